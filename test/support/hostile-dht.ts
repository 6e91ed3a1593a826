/** Nodes that violate the protocol, and raw datagrams. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import type { Address } from '../../src/foundation/address.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { DhtEngine } from '../../src/network/records/engine.ts';
import { networkTag } from '../../src/network/records/node-address.ts';
import { PeerHealth } from '../../src/network/records/peer-health.ts';
import type { RpcRequest } from '../../src/network/records/rpc/rpc.ts';

/** A node with the protocol of the engine whose responses the test controls. */
export async function hostileNode(
  t: TestContext,
  onRequest: (request: RpcRequest) => void,
  network = 'test',
): Promise<DhtEngine> {
  const engine = new DhtEngine(
    { host: '127.0.0.1', port: 0, tag: networkTag(network) },
    {
      clock: systemClock,
      health: new PeerHealth({ clock: systemClock }),
      isOwnHost: () => false,
      sourceTo: () => null,
    },
  );
  engine.events.request.add(onRequest);
  await engine.start();
  t.after(() => engine.stop());
  await engine.join(engine.address);
  return engine;
}

export interface RawRequest {
  readonly command: number;
  readonly internal?: boolean;
  readonly target?: Uint8Array;
  readonly value?: Uint8Array;
  /** The token of a response, which proves the sender's address. */
  readonly token?: Uint8Array;
}

/** A request datagram. `from` is the address that the sender claims for the receiver. */
export function rawRequest(to: Address, request: RawRequest, network = 'test'): Buffer {
  const { target, value, token } = request;
  const flags =
    (token === undefined ? 0 : 2) +
    (request.internal === true ? 4 : 0) +
    (target === undefined ? 0 : 8) +
    (value === undefined ? 0 : 16);
  const [a = 0, b = 0, c = 0, d = 0] = to.host.split('.').map(Number);
  const head = Buffer.from([0x03, flags, 7, 7, a, b, c, d, to.port & 0xff, to.port >> 8]);
  const length =
    value === undefined ? [] : value.length < 0xfd ? [value.length] : [0xfd, value.length & 0xff, value.length >> 8];
  return Buffer.concat([
    networkTag(network),
    head,
    token ?? new Uint8Array(),
    Buffer.from([request.command]),
    target ?? new Uint8Array(),
    Buffer.from(length),
    value ?? new Uint8Array(),
  ]);
}

/** A plain UDP socket on 127.0.0.1. */
export async function rawSocket(t: TestContext): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => socket.close());
  return socket;
}
