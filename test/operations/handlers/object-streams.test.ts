import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import type { RemoteObject } from '../../../src/capabilities/objects/remote-objects.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { HttpStreamHandler } from '../../../src/operations/handlers/exchange.ts';
import {
  type ObjectStreamDependencies,
  objectStreamHandlers,
  UPLOAD_STALL_MS,
} from '../../../src/operations/handlers/objects.ts';
import type { CallContext } from '../../../src/operations/operation.ts';
import { testAid } from '../../support/agents.ts';
import { sha256 } from '../../support/object-world.ts';
import { localContext } from '../../support/run-operation.ts';
import { TestClock } from '../../support/test-clock.ts';

const [NODE, AGENT, HOLDER] = [testAid(1), testAid(2), testAid(3)];
const BYTES = Buffer.from('the content');
const OBJECT_ID = sha256(BYTES);

/** Handlers with objects that store their input; other calls fail. */
function handlersOf(more: Partial<ObjectStreamDependencies>) {
  return objectStreamHandlers({
    objects: { store: () => assert.fail('stored') },
    remote: { read: () => assert.fail('read') },
    clock: new TestClock(),
    nodeAid: NODE,
    requireAgent: (aid) => aid,
    heartbeat: () => {},
    ...more,
  });
}

interface Served {
  readonly port: number;
  /** The error of the handler, or null. */
  readonly outcome: Promise<unknown>;
}

/** Serves requests with one handler; an error before the head is answered with its code. */
async function serve(
  t: TestContext,
  handle: HttpStreamHandler,
  input: Readonly<Record<string, unknown>>,
  context: Partial<CallContext> = {},
): Promise<Served> {
  const outcome = Promise.withResolvers<unknown>();
  const serveOne = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      await handle({ request: incoming, response, input, context: localContext(context) });
      outcome.resolve(null);
    } catch (error) {
      outcome.resolve(error);
      if (!response.headersSent) response.writeHead(error instanceof SvcError ? error.status : 500).end();
    }
  };
  const server = createServer((incoming, response) => void serveOne(incoming, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  return { port, outcome: outcome.promise };
}

interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer | string;
}

async function ask(port: number, { method = 'GET', path = '/', headers = {}, body }: Asked) {
  const call = request({ host: '127.0.0.1', port, method, path, headers, agent: false });
  call.end(body);
  const [response]: IncomingMessage[] = await once(call, 'response');
  assert.ok(response !== undefined);
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

const UPLOAD = { method: 'POST', headers: { 'content-type': 'application/octet-stream' } };

async function drain(source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('an upload is stored for its agent under its name and length, and counts as a heartbeat', async (t) => {
  const heard: unknown[] = [];
  const { objectUpload } = handlersOf({
    objects: {
      store: async (aid, source, name, size) => {
        heard.push(aid, name, size, String(await drain(source)));
        return { objectId: OBJECT_ID, size: 11, name: 'x', url: `svc://${aid}/cas/${OBJECT_ID}`, isNew: true };
      },
    },
    requireAgent: (aid) => {
      heard.push('here?', aid);
      return aid;
    },
    heartbeat: (aid) => void heard.push('alive', aid),
  });
  const { port } = await serve(
    t,
    objectUpload,
    { aid: AGENT.toUpperCase(), name: 'x' },
    { requireToken: () => void heard.push('token') },
  );
  const answer = await ask(port, { ...UPLOAD, body: BYTES });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  assert.deepEqual(JSON.parse(String(answer.body)), {
    object_id: OBJECT_ID,
    size: 11,
    name: 'x',
    url: `svc://${AGENT}/cas/${OBJECT_ID}`,
  });
  assert.deepEqual(heard, ['token', 'here?', AGENT, AGENT, 'x', 11, 'the content', 'alive', AGENT]);
});

test('a refused upload is not read, and is no heartbeat', async (t) => {
  const refusals: Partial<ObjectStreamDependencies & CallContext>[] = [
    {
      requireToken: () => {
        throw new SvcError('unauthorized');
      },
    },
    {
      requireAgent: () => {
        throw new SvcError('not_found');
      },
    },
    { objects: { store: async () => Promise.reject(new SvcError('quota_exceeded')) } },
  ];
  const codes: unknown[] = [];
  for (const refusal of refusals) {
    const { objectUpload } = handlersOf({ heartbeat: () => assert.fail('counted'), ...refusal });
    const context = refusal.requireToken === undefined ? {} : { requireToken: refusal.requireToken };
    const { port, outcome } = await serve(t, objectUpload, { aid: AGENT }, context);
    await ask(port, { ...UPLOAD, body: BYTES });
    codes.push(Reflect.get(Object(await outcome), 'code'));
  }
  assert.deepEqual(codes, ['unauthorized', 'not_found', 'quota_exceeded']);
});

/** An upload whose first bytes were read; the test continues it. */
async function begunUpload(t: TestContext, clock: TestClock) {
  const read = Promise.withResolvers<void>();
  const { objectUpload } = handlersOf({
    clock,
    objects: {
      store: async (aid, source) => {
        for await (const _ of source) read.resolve();
        return { objectId: OBJECT_ID, size: 0, name: '', url: `svc://${aid}`, isNew: true };
      },
    },
  });
  const served = await serve(t, objectUpload, { aid: AGENT });
  const call = request({ host: '127.0.0.1', port: served.port, ...UPLOAD, agent: false }).on('error', () => {});
  call.write('some');
  await read.promise;
  return { call, served };
}

test('a stalled upload is canceled, an active upload is not', async (t) => {
  const clock = new TestClock();
  const { call, served } = await begunUpload(t, clock);
  while (clock.timers === 0) await new Promise((resolve) => setImmediate(resolve));
  clock.advance(UPLOAD_STALL_MS - 1);
  assert.equal(clock.timers, 1, 'not yet');
  clock.advance(1);
  assert.equal(Reflect.get(Object(await served.outcome), 'code'), 'timeout');
  assert.equal(clock.timers, 0);
  call.destroy();
});

test('an upload whose client disconnects is canceled, for any socket error', async (t) => {
  const clock = new TestClock();
  const { call, served } = await begunUpload(t, clock);
  call.destroy();
  const error = await served.outcome;
  assert.ok(error instanceof SvcError && error.code === 'cancelled' && error.cause instanceof Error);
  assert.equal(clock.timers, 0);
});

function remoteObject(more: Partial<RemoteObject> = {}): RemoteObject {
  return {
    status: 200,
    size: BYTES.length,
    start: 0,
    length: BYTES.length,
    name: 'x.txt',
    body: Readable.from([BYTES]),
    release: () => {},
    ...more,
  };
}

const READ = { path: `/aid/${HOLDER}/cas/${OBJECT_ID}` };
const INPUT = { holder: HOLDER.toUpperCase(), object_id: OBJECT_ID };

test('an object is read as this node, with the condition and range of the client', async (t) => {
  const asked: unknown[] = [];
  const { objectRead } = handlersOf({
    remote: {
      read: async ({ local, holder, resource, method, headers, signal }) => {
        asked.push(local, holder, resource.tag, method, headers['range'], signal?.aborted);
        return remoteObject();
      },
    },
  });
  const { port } = await serve(t, objectRead, INPUT);
  const answer = await ask(port, { ...READ, headers: { range: 'bytes=0-' } });
  assert.deepEqual([answer.status, String(answer.body)], [200, 'the content']);
  assert.equal(answer.headers['content-length'], '11');
  assert.deepEqual(asked, [NODE, HOLDER, OBJECT_ID, 'GET', 'bytes=0-', false]);
});

test("responses without content have no body, and do not wait for the holder's body", async (t) => {
  for (const [method, status] of [
    ['HEAD', 200],
    ['GET', 304],
    ['GET', 416],
  ] as const) {
    const endless = new Readable({ read() {} });
    endless.push('not to be sent');
    const { objectRead } = handlersOf({ remote: { read: async () => remoteObject({ status, body: endless }) } });
    const { port } = await serve(t, objectRead, INPUT);
    const answer = await ask(port, { ...READ, method });
    assert.deepEqual([answer.status, String(answer.body)], [status, ''], `${method} ${status}`);
    if (!endless.destroyed) await once(endless, 'close');
  }
});

test('a range is streamed, a complete object only if its hash is right', async (t) => {
  const part = remoteObject({ status: 206, start: 4, length: 3, body: Readable.from([Buffer.from('con')]) });
  const { objectRead } = handlersOf({ remote: { read: async () => part } });
  const { port } = await serve(t, objectRead, INPUT);
  const answer = await ask(port, READ);
  assert.deepEqual([answer.status, String(answer.body)], [206, 'con']);
  assert.equal(answer.headers['content-range'], 'bytes 4-6/11');
  const forged = remoteObject({ body: Readable.from([Buffer.from('the '), Buffer.from('forgery')]) });
  const { objectRead: lying } = handlersOf({ remote: { read: async () => forged } });
  const { port: other } = await serve(t, lying, INPUT);
  await assert.rejects(ask(other, READ), 'closed before the last piece');
});

test('a client that disconnects stops the read at the holder', async (t) => {
  const endless = new Readable({ read() {} });
  endless.push(BYTES);
  const { objectRead } = handlersOf({
    remote: { read: async () => remoteObject({ status: 206, length: 1000, size: 2000, body: endless }) },
  });
  const { port } = await serve(t, objectRead, INPUT);
  const call = request({ host: '127.0.0.1', port, ...READ, agent: false }).on('error', () => {});
  call.end();
  await once(call, 'response');
  const closed = once(endless, 'close');
  call.destroy();
  await closed;
});

test('a path that is not remote content, and a worker, are refused', async (t) => {
  const { objectRead } = handlersOf({});
  for (const asked of [
    { path: `/%61id/${HOLDER}/cas/${OBJECT_ID}` },
    { ...READ, headers: { 'service-worker': 'script' } },
  ]) {
    const { port, outcome } = await serve(t, objectRead, INPUT);
    assert.equal((await ask(port, asked)).status, 404);
    assert.equal(Reflect.get(Object(await outcome), 'code'), 'not_found');
  }
});
