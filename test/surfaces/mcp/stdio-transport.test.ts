import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../../src/foundation/log.ts';
import type { CallContext } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { MAX_SHARED_MESSAGE_BYTES } from '../../../src/surfaces/mcp/message-reader.ts';
import { serveTools } from '../../../src/surfaces/mcp/stdio.ts';
import { FINISH_REQUESTS_MS, MODERN_REVISIONS } from '../../../src/surfaces/mcp/stdio-transport.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import { bindAll, MODERN } from './world.ts';

const { aid } = newIdentity();

interface Write {
  readonly text: string;
  readonly done: (error?: Error) => void;
}

/** A session whose output the test releases, and a poll that reports the fate of its response. */
function setUp(t: TestContext, mailboxPoll: () => Promise<object> = async () => ({ messages: [], has_more: false })) {
  const input = new PassThrough();
  const writes: Write[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => void writes.push({ text: chunk.toString(), done }),
  });
  const settled: boolean[] = [];
  const run = (_input: unknown, context: CallContext): Promise<object> => {
    context.onAnswered?.((arrived) => void settled.push(arrived));
    return mailboxPoll();
  };
  const tools = new ToolTable({ operations: bindAll({ mailboxPoll: run }), pending: () => ({}) });
  const clock = new LeapClock();
  const session = serveTools({ version: '1.2.3' }, { input, output, tools, clock, log: silentLog });
  t.after(() => session.close());
  const send = (message: object): boolean => input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const poll = (id: number): boolean =>
    send({ id, method: 'tools/call', params: { name: 'svc_mailbox_poll', arguments: { aid } } });
  const written = (id: number): Promise<Write> =>
    eventually(`answer ${id}`, () => writes.find(({ text }) => JSON.parse(text).id === id));
  const open = async (): Promise<void> => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    send({ id: 0, method: 'initialize', params });
    (await written(0)).done();
    send({ method: 'notifications/initialized' });
  };
  return { input, output, writes, settled, send, poll, written, open, clock, session };
}

test('data handed out over stdio counts as taken after the response was written', async (t) => {
  const { settled, poll, written, open } = setUp(t);
  await open();
  poll(1);
  const { done } = await written(1);
  assert.deepEqual(settled, []);
  done();
  await eventually('the answer has left', () => settled.length > 0);
  assert.deepEqual(settled, [true]);
});

test('rejects a later request of an unknown revision, and knows the revisions of the SDK', async (t) => {
  const { send, written } = setUp(t);
  const ask = (id: number, revision: string): Promise<Write> => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    send({ id, method: id === 1 ? 'tools/list' : 'server/discover', params: { _meta: meta } });
    return written(id);
  };
  (await ask(1, MODERN)).done();
  const discovered = await ask(2, MODERN);
  discovered.done();
  assert.deepEqual(JSON.parse(discovered.text).result.supportedVersions, MODERN_REVISIONS);
  const { error } = JSON.parse((await ask(3, '2099-01-01')).text);
  assert.deepEqual(error.data, { supported: MODERN_REVISIONS, requested: '2099-01-01' });
});

test('a response that cannot be written returns the data that was handed out', async (t) => {
  const { settled, poll, written, open } = setUp(t);
  await open();
  poll(1);
  (await written(1)).done(new Error('the client disconnected'));
  await eventually('it is given back', () => settled.length > 0);
  assert.deepEqual(settled, [false]);
});

test('an aborted or abandoned call returns the data that was handed out', async (t) => {
  const { input, output, settled, send, poll, open } = setUp(t, () => new Promise(() => {}));
  await open();
  poll(1);
  poll(2);
  send({ method: 'notifications/cancelled', params: { requestId: 1 } });
  await eventually('the first is given back', () => settled.length > 0);
  assert.deepEqual(settled, [false]);
  input.end();
  output.destroy(new Error('the client disconnected'));
  await eventually('the second is given back', () => settled.length > 1);
  assert.deepEqual(settled, [false, false]);
});

test('answers pending requests at the end of input before it closes the session', async (t) => {
  const answers = [Promise.withResolvers<object>(), Promise.withResolvers<object>()];
  let next = 0;
  const { input, settled, poll, written, open, session } = setUp(t, () => answers[next++]?.promise ?? Promise.reject());
  await open();
  poll(1);
  poll(2);
  input.end();
  await eventually('both run', () => next === 2);
  let closed = false;
  const ended = session.closed.then(() => (closed = true));
  answers[1]?.resolve({ messages: [], has_more: false });
  (await written(2)).done();
  await eventually('it was delivered', () => settled.length === 1);
  assert.equal(closed, false);
  answers[0]?.resolve({ messages: [], has_more: false });
  (await written(1)).done();
  await ended;
  assert.deepEqual(settled, [true, true]);
});

test('a request without a response does not delay the end forever', async (t) => {
  const { input, settled, poll, open, clock, session } = setUp(t, () => new Promise(() => {}));
  await open();
  poll(1);
  input.end();
  await once(input, 'end');
  clock.leap(FINISH_REQUESTS_MS);
  await session.closed;
  assert.deepEqual(settled, [false]);
});

test('invalid input gets error responses, and the session continues', async (t) => {
  const { input, send, writes, open, session } = setUp(t);
  await open();
  input.write('hello\n');
  input.write(
    `{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":"${'a'.repeat(MAX_SHARED_MESSAGE_BYTES)}"}}\n`,
  );
  input.write('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}\n');
  input.write('[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n');
  send({ id: 3, method: 'ping' });
  input.end('{"jsonrpc":"2.0","id":4,"method":"ping"}');
  const written: string[] = [];
  const seen = 1;
  await eventually('all are answered', () => {
    const next = writes[seen + written.length];
    if (next !== undefined) {
      written.push(next.text.replace(/"message":"[^"]*"/, '"message":""').trim());
      next.done();
    }
    return written.length === 7;
  });
  await session.closed;
  const error = (id: string, code: number): string =>
    `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":""}}`;
  assert.deepEqual(written.slice(0, 3), [
    error('null', -32700),
    error('"long"', -32600),
    error('9007199254740993', -32600),
  ]);
  assert.deepEqual(
    written.slice(3).map((text) => JSON.parse(text)),
    [1, 2, 3, 4].map((id) => ({ result: {}, jsonrpc: '2.0', id })),
  );
});
