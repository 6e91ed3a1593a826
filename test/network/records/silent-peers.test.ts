/** Which unanswered requests count as failures of a peer. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { DhtEngine } from '../../../src/network/records/engine.ts';
import { COMMAND } from '../../../src/network/records/messages.ts';
import { networkTag, nodeId } from '../../../src/network/records/node-address.ts';
import { FAILURES_TO_DROP, PeerHealth } from '../../../src/network/records/peer-health.ts';
import { decodeDatagram, encodeDatagram } from '../../../src/network/records/rpc/messages.ts';
import { machine } from '../../../src/network/records/rpc/world.ts';
import { TestClock } from '../../support/test-clock.ts';

const TAG = networkTag('test');

interface HeardRequest {
  readonly requestId: number;
  readonly from: Address;
}

interface Peer {
  readonly address: Address;
  /** Resolves with the next request. */
  heard(): Promise<HeardRequest>;
  answer(request: HeardRequest, id?: Uint8Array | null): void;
}

/** A peer that answers only when the test decides. */
async function silentPeer(t: TestContext): Promise<Peer> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return {
    address: { host: '127.0.0.1', port: socket.address().port },
    async heard() {
      const [bytes, { address: host, port }] = await once(socket, 'message');
      const datagram = decodeDatagram(bytes, TAG);
      assert.ok(datagram);
      return { requestId: datagram.requestId, from: { host, port } };
    },
    answer({ requestId, from }, id: Uint8Array | null = null) {
      const value = Uint8Array.of(7);
      socket.send(
        encodeDatagram({ kind: 'answer', requestId, to: from, id, token: null, nodes: [], error: 0, value }, TAG),
        from.port,
        from.host,
      );
    },
  };
}

async function engineWith(t: TestContext, clock: TestClock, health: PeerHealth): Promise<DhtEngine> {
  const engine = new DhtEngine(
    { host: '127.0.0.1', port: 0, tag: TAG },
    { clock, health, isOwnHost: () => false, sourceTo: () => null, world: { ...machine(), clock } },
  );
  await engine.start();
  t.after(() => engine.stop());
  return engine;
}

const MESSAGE = { command: COMMAND.find, value: new Uint8Array(1) };

test('a peer has failed after one second of silence, or four if the request is retransmitted', async (t) => {
  const clock = new TestClock();
  const health = new PeerHealth({ clock });
  const engine = await engineWith(t, clock, health);
  const peer = await silentPeer(t);
  const ask = async (retry: boolean, limitMs: number): Promise<number> => {
    const heard = peer.heard();
    const reply = engine.request(peer.address, MESSAGE, { retry });
    await heard;
    clock.advance(limitMs - 1);
    assert.equal(await Promise.race([reply, turn('pending')]), 'pending');
    clock.advance(1);
    assert.equal(await reply, null);
    return health.failures(peer.address);
  };
  assert.equal(await ask(false, 1000), 1);
  assert.equal(await ask(true, 4000), FAILURES_TO_DROP);
});

test('an answer that arrived while this process was stopped counts', async (t) => {
  const clock = new TestClock();
  const health = new PeerHealth({ clock });
  const engine = await engineWith(t, clock, health);
  const peer = await silentPeer(t);
  const heard = peer.heard();
  const reply = engine.request(peer.address, MESSAGE);
  const request = await heard;
  // After a stop, timers fire before sockets are read.
  clock.jump(60_000);
  clock.advance(0);
  peer.answer(request);
  assert.deepEqual((await reply)?.value, Buffer.of(7));
  assert.equal(health.failures(peer.address), 0);
});

test('a node leaves the routing table after two consecutive failures', async (t) => {
  const clock = new TestClock();
  const engine = await engineWith(t, clock, new PeerHealth({ clock }));
  const peer = await silentPeer(t);
  const left: Address[] = [];
  engine.events.left.add((node) => left.push(node));
  const ask = async (isAnswered: boolean): Promise<void> => {
    const heard = peer.heard();
    const reply = engine.request(peer.address, MESSAGE);
    const request = await heard;
    if (isAnswered) peer.answer(request, nodeId(peer.address));
    else clock.advance(1000);
    await reply;
  };
  for (const isAnswered of [true, false, true, false]) await ask(isAnswered);
  assert.deepEqual([engine.peerCount, left], [1, []]);
  await ask(false);
  assert.deepEqual([engine.peerCount, left], [0, [peer.address]]);
});
