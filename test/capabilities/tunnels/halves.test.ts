/** The two directions of a connection end separately, and a reset is never an end. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { dial, endOf } from '../../support/tcp.ts';
import { TunnelWorld } from '../../support/tunnel-world.ts';

/** A client and the service's end of its connection. */
async function pair(world: TunnelWorld): Promise<[Socket, Socket]> {
  const { tunnel } = await world.tunnels.open(world.request());
  const client = await dial(tunnel.listen);
  client.write('hello');
  const served = await eventually('the service has the connection', () =>
    [...world.service.sockets].find((socket) => socket.bytesRead > 0),
  );
  return [client, served];
}

const serve = (socket: Socket): void => void socket.on('data', () => {});

for (const [who, from, to] of [
  ['the client', 0, 1],
  ['the service', 1, 0],
] as const) {
  test(`after ${who} ends its half, the other half carries bytes and ends later`, async () => {
    await using world = await TunnelWorld.start(serve);
    const ends = await pair(world);
    const [ending, other] = [ends[from], ends[to]];
    other.resume();
    const ended = once(other, 'end');
    ending.end('last words');
    await ended;
    for (let i = 0; i < 3; i++) {
      const heard = once(ending, 'data');
      other.write(`still ${i}`);
      assert.equal(String((await heard)[0]), `still ${i}`);
    }
    const closed = endOf(ending);
    other.end();
    assert.equal(await closed, 'end');
  });

  test(`after ${who} ends its half, a reset by the other end is a reset`, async () => {
    await using world = await TunnelWorld.start(serve);
    const ends = await pair(world);
    const [ending, other] = [ends[from], ends[to]];
    other.resume();
    const ended = once(other, 'end');
    ending.end('last words');
    await ended;
    const closed = endOf(ending);
    other.resetAndDestroy();
    assert.equal(await closed, 'ECONNRESET');
  });

  test(`a reset by ${who} after its own end is a reset`, async () => {
    await using world = await TunnelWorld.start(serve);
    const ends = await pair(world);
    const [resetting, other] = [ends[from], ends[to]];
    const ended = once(other, 'end');
    other.resume();
    resetting.end();
    await ended;
    let code: string | undefined;
    other.once('error', (error: NodeJS.ErrnoException) => {
      code = error.code;
    });
    resetting.resetAndDestroy();
    // The system reports a reset after an end only to a program that writes.
    await eventually('the reset arrives', () => {
      if (other.writable) other.write('anybody there?');
      return code !== undefined;
    });
    assert.match(String(code), /ECONNRESET|EPIPE/);
  });

  test(`a reset by ${who} is a reset while the other end reads nothing`, async () => {
    await using world = await TunnelWorld.start(serve);
    const ends = await pair(world);
    const [resetting, other] = [ends[from], ends[to]];
    other.pause();
    // More than the path holds.
    resetting.write(Buffer.alloc(48 * 1024 * 1024));
    await eventually('bytes are under way', () => other.readableLength > 0);
    const closed = once(other, 'error');
    resetting.resetAndDestroy();
    other.resume();
    const [error] = await closed;
    assert.equal(error.code, 'ECONNRESET');
  });
}
