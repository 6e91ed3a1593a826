/**
 * A raw HTTP service behind a link, and the two ways for local programs to reach it: a local address and the gateway.
 */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { originServers } from '../../../src/surfaces/origin/origin-server.ts';
import { type GatewayWorld, gatewayWorld } from './gateway-world.ts';

const HOST = '127.0.0.1';
const HEAD_END = '\r\n\r\n';

export interface Edge {
  readonly name: string;
  readonly port: number;
  /** Prefix of each path. */
  readonly prefix: string;
}

/** A connection on which the test writes raw bytes. */
export interface RawClient {
  readonly socket: Socket;
  /** The received bytes, one character each. */
  readonly output: () => string;
  /** Whether the remote side closed the connection or reset it. */
  readonly ended: Promise<'end' | 'broken'>;
}

export interface EdgesWorld extends GatewayWorld {
  readonly edges: readonly Edge[];
  /** Connections of the service. */
  readonly served: Set<Socket>;
  /** The request heads that the service received. */
  readonly heads: string[];
}

function rawClient(port: number): RawClient {
  const socket = connect({ port, host: HOST, allowHalfOpen: true });
  let output = '';
  socket.on('data', (chunk) => {
    output += chunk.toString('latin1');
  });
  const ended = new Promise<'end' | 'broken'>((resolve) => {
    socket.once('end', () => resolve('end'));
    socket.on('error', () => resolve('broken'));
    socket.once('close', () => resolve('broken'));
  });
  return { socket, output: () => output, ended };
}

export function open({ port }: Edge): RawClient {
  return rawClient(port);
}

/** Sends a request with `Connection: close`. Returns the response, one character per byte. */
export async function speak({ port, prefix }: Edge, path: string, lines = '', method = 'GET'): Promise<string> {
  const { socket, output, ended } = rawClient(port);
  socket.write(`${method} ${prefix}${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines}\r\n`, 'latin1');
  await ended;
  socket.destroy();
  return output();
}

/** @param serve called for each request after its head, with the first bytes of its body */
export async function edgesWorld(
  t: TestContext,
  serve: (head: string, socket: Socket, rest: Buffer) => void,
): Promise<EdgesWorld> {
  const world = await gatewayWorld(t, null);
  const { caller, clock, local, remote, bound } = world.calls;
  const served = new Set<Socket>();
  const heads: string[] = [];
  const service = createServer({ allowHalfOpen: true }, (socket) => {
    served.add(socket);
    socket.on('error', () => {}).once('close', () => served.delete(socket));
    let head: string | null = '';
    const take = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      const end = head?.indexOf(HEAD_END) ?? -1;
      if (head === null || end < 0) return;
      const [whole, rest] = [head.slice(0, end + HEAD_END.length), head.slice(end + HEAD_END.length)];
      head = null;
      socket.off('data', take);
      heads.push(whole);
      serve(whole, socket, Buffer.from(rest, 'latin1'));
      if (!/^connection: upgrade\r$/im.test(whole)) {
        head = '';
        socket.on('data', take);
      }
    };
    socket.on('data', take);
  });
  service.listen(0, HOST);
  await once(service, 'listening');
  const address = service.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  bound.set(remote, { scheme: 'http', host: HOST, port, acceptsCalls: true, verifyCertificate: true });
  const cards = {
    toLocalCard: async () => {
      throw new SvcError('not_found');
    },
  };
  const push = { register: async () => null, findByUrl: () => null, remove: () => {} };
  const listen = originServers({
    caller,
    clock,
    log: silentLog,
    cards,
    signedCard: async () => null,
    push,
    carry: async () => {},
  });
  const target = { id: 'x', localAid: local, remoteAid: remote, accessToken: undefined };
  const origin = await listen(() => target, 0);
  t.after(async () => {
    for (const socket of served) socket.destroy();
    service.close();
    await origin.close();
  });
  const edges = [
    { name: 'local address', port: origin.port, prefix: '' },
    { name: 'gateway', port: world.api.port, prefix: world.prefix },
  ];
  return { ...world, edges, served, heads };
}
