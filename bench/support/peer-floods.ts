/** Floods over QUIC by one peer, with one node key at a time. */
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { fromHex } from '../../src/foundation/bytes.ts';
import { detach } from '../../src/foundation/detached.ts';
import { parseAid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { serviceKey } from '../../src/foundation/records/keys.ts';
import { guard } from '../../src/foundation/stream-listeners.ts';
import { makeProof } from '../../src/network/links/proofs.ts';
import { HELLO_NONCE_BYTES, INSTANCE_BYTES, networkId } from '../../src/network/peers/greeter.ts';
import { KIND, u32 } from '../../src/network/peers/wire.ts';
import { encodeNodeRequest } from '../../src/network/records/messages.ts';
import { networkTag } from '../../src/network/records/node-address.ts';
import { NativeQuicEndpoint } from '../../src/network/transport/quic/native-endpoint.ts';
import { localIdentity, newIdentity } from '../../test/support/identities.ts';
import { linkBytes, RawSession } from '../../test/support/raw-peer.ts';
import type { Flood, Target } from './flood.ts';

/** Concurrent streams of the floods with few and with many streams. */
const FEW = 16;
const MANY = 256;

/** Connects and sends the hello with an unknown key. */
async function connect({ quic, nodeKey }: Target): Promise<{ session: RawSession; stop: () => Promise<void> }> {
  const key = KeyPair.generate();
  const endpoint = new NativeQuicEndpoint({ key, host: '127.0.0.1', port: 0 }, { log: silentLog });
  await endpoint.start();
  try {
    const connection = await endpoint.dial(quic, fromHex(nodeKey) ?? new Uint8Array());
    const hello = { nonce: randomBytes(HELLO_NONCE_BYTES), instance: randomBytes(INSTANCE_BYTES) };
    const session = new RawSession(connection, hello, key.publicKey);
    await session.greet(networkId(''));
    return { session, stop: () => endpoint.stop() };
  } catch (error) {
    await endpoint.stop();
    throw error;
  }
}

/** Content of the next stream. */
type Next = (session: RawSession, index: number) => Uint8Array;

/** Opens streams in batches, and reconnects after a disconnect. */
function flood(parallel: number, prepare: (target: Target) => Next): Flood {
  return async (target) => {
    const next = prepare(target);
    return async (until, sent) => {
      while (!until.aborted) {
        const connected = await connect(target).catch(() => null);
        if (connected === null) continue;
        const { session, stop } = connected;
        let index = 0;
        const cutOff = new AbortController();
        detach(session.connection.closed.then(() => cutOff.abort()));
        const one = async (): Promise<void> => {
          while (!cutOff.signal.aborted && !until.aborted) {
            const stream = await session.send(next(session, index++));
            guard(stream);
            sent(1);
            await new Promise<void>((resolve) => stream.resume().once('end', resolve).once('close', resolve));
            stream.destroy();
          }
        };
        await Promise.allSettled(Array.from({ length: parallel }, one));
        await stop();
      }
    };
  };
}

function nodeRequest(body: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(KIND.nodeRequest), u32(body.length), body]);
}

function page({ service }: Target): Next {
  const tag = networkTag('');
  const body = encodeNodeRequest({ kind: 'page', tag, key: serviceKey(service), types: [], from: 0 });
  return () => nodeRequest(body);
}

/** Each is from a new agent, with a wrong secret. */
function guess({ guarded }: Target): Next {
  const called = parseAid(guarded);
  return (session, index) => {
    const agent = newIdentity();
    const proof = makeProof('caller', localIdentity(agent), session.here, session.there);
    const accessToken = `a guess ${index}`;
    return linkBytes({ caller: agent.aid, called, purpose: 'http', accessToken, proof, wantsProof: false });
  };
}

/** Node keys that leave responses unread, each on a separate connection. */
const UNREAD_NODES = 4;
const UNREAD_REQUEST = Buffer.from('GET /1MB HTTP/1.1\r\nHost: flood.test\r\n\r\n'.repeat(8));

/** Requests 1 MiB eight times from a new agent each time, reads nothing, and repeats after a disconnect. */
function unread(purpose: 'http' | 'tcp'): Flood {
  return async (target) => {
    const called = parseAid(target.open);
    const over = async (until: AbortSignal, sent: (count: number) => void): Promise<void> => {
      const { session, stop } = await connect(target);
      const cutOff = new AbortController();
      detach(session.connection.closed.then(() => cutOff.abort()));
      const ended = AbortSignal.any([until, cutOff.signal]);
      const one = async (): Promise<void> => {
        while (!ended.aborted) {
          const agent = newIdentity();
          const proof = makeProof('caller', localIdentity(agent), session.here, session.there);
          const header = { caller: agent.aid, called, purpose, accessToken: '', proof, wantsProof: false };
          const stream = await session.send(linkBytes(header), UNREAD_REQUEST);
          guard(stream);
          sent(1);
          await once(stream, 'close', { signal: ended }).catch(() => {});
          stream.destroy();
        }
      };
      await Promise.allSettled(Array.from({ length: MANY }, one));
      await stop();
    };
    return async (until, sent) => {
      const lane = async (): Promise<void> => {
        while (!until.aborted) await over(until, sent).catch(() => {});
      };
      await Promise.all(Array.from({ length: UNREAD_NODES }, lane));
    };
  };
}

/** Connects, sends the hello, disconnects, and reconnects with another key. */
const churn: Flood = async (target) => async (until, sent) => {
  const one = async (): Promise<void> => {
    while (!until.aborted) {
      const { stop } = await connect(target).catch(() => ({ stop: async () => {} }));
      sent(1);
      await stop();
    }
  };
  await Promise.all(Array.from({ length: FEW }, one));
};

export const peerFloods: Readonly<Record<string, Flood>> = {
  'over QUIC, pages': flood(FEW, page),
  'over QUIC, pages in bursts': flood(MANY, page),
  'over QUIC, node requests of noise': flood(MANY, () => () => nodeRequest(randomBytes(randomInt(2000)))),
  'over QUIC, streams of noise': flood(MANY, () => () => randomBytes(randomInt(1, 100))),
  'over QUIC, guesses of a secret': flood(MANY, guess),
  'over QUIC, connections come and go': churn,
  'over QUIC, calls whose answers nobody reads': unread('http'),
  'over QUIC, tunnels that nobody reads': unread('tcp'),
};
