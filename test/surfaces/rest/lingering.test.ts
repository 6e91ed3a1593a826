import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { BoundStream } from '../../../src/operations/handlers/exchange.ts';
import { NONE } from '../../../src/operations/schemas.ts';
import { eventually } from '../../support/eventually.ts';
import { TestClock } from '../../support/test-clock.ts';
import { startWorld, type World } from './support.ts';

const MIB = 1024 * 1024;
const PIECE = Buffer.alloc(MIB, 'x');

/** Rejects an upload without reading it. */
const refusing: BoundStream = {
  declaration: {
    name: 'upload',
    summary: 'Rejects bytes.',
    methods: ['POST'],
    path: '/upload',
    params: NONE,
    query: NONE,
    accepts: 'application/octet-stream',
    produces: 'text/plain',
    permission: 'write',
    errors: [],
    tag: 'Test',
  },
  handle: () => {
    throw new SvcError('quota_exceeded');
  },
};

interface Refused {
  readonly client: Socket;
  readonly clock: TestClock;
  readonly world: World;
  readonly answer: string;
}

/** Sends the head and the first byte of a body, and reads the response to its end. Our side stays open. */
async function refused(t: TestContext, path: string, type: string, length: number): Promise<Refused> {
  const clock = new TestClock();
  const world = await startWorld(t, { clock, streams: [refusing] });
  const client = connect({ port: world.port, host: world.host, allowHalfOpen: true });
  t.after(() => client.destroy());
  let answer = '';
  client.setEncoding('utf8').on('data', (text: string) => (answer += text));
  client.on('error', () => {});
  client.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\nx`,
  );
  await once(client, 'end');
  return { client, clock, world, answer };
}

function write(client: Socket, data: Uint8Array | string): Promise<Error | null> {
  return new Promise((resolve) => client.write(data, (error) => resolve(error ?? null)));
}

/** True if the connection broke before this many MiB were accepted. */
async function breaksWithin(client: Socket, pieces: number): Promise<boolean> {
  for (let i = 0; i < pieces; i++) if ((await write(client, PIECE)) !== null) return true;
  return false;
}

const SENT = 16;
const BODIES = [
  ['a JSON body over the limit', '/things/x/echo', 'application/json', /^HTTP\/1\.1 413 .*too_large/s],
  ['a body of the wrong type', '/things/x/echo', 'text/plain', /^HTTP\/1\.1 415 .*unsupported_media_type/s],
  ['an upload', '/upload', 'application/octet-stream', /^HTTP\/1\.1 413 .*quota_exceeded/s],
] as const;

for (const [what, path, type, expected] of BODIES)
  test(`${what} can be sent to its end after the response`, async (t) => {
    const { client, clock, answer } = await refused(t, path, type, SENT * MIB + 1);
    assert.match(answer, expected);
    assert.match(answer, /Connection: close/i);
    assert.equal(await breaksWithin(client, SENT), false);
    await eventually('the connection is closed afterwards', () => clock.timers === 0);
  });

test('a request after a rejected body does not run', async (t) => {
  const { client, clock, world } = await refused(t, '/things/x/echo', 'application/json', 2 * MIB + 1);
  await write(client, Buffer.concat([PIECE, PIECE, Buffer.from('GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n')]));
  await eventually('the connection is closed', () => clock.timers === 0);
  assert.equal(world.waiting.length, 0);
});

test('a rejected body is discarded only up to a size and a time limit', async (t) => {
  const endless = await refused(t, '/things/x/echo', 'application/json', 1024 * MIB);
  assert.equal(await breaksWithin(endless.client, 128), true);

  const { client, clock } = await refused(t, '/things/x/echo', 'application/json', 1024 * MIB);
  assert.equal(clock.timers, 1);
  clock.advance(30_000);
  assert.equal(clock.timers, 0);
  assert.equal(await breaksWithin(client, 16), true);
});
