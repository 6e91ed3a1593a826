import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { followEvents, type ReceivedEvent } from '../../src/operations/event-client.ts';
import { eventWorld, one, unknown } from '../support/event-world.ts';
import { withCode } from '../support/link-world.ts';

/** The next events of a stream. */
async function take(events: AsyncGenerator<ReceivedEvent>, count: number): Promise<ReceivedEvent[]> {
  const taken: ReceivedEvent[] = [];
  while (taken.length < count) {
    const next = await events.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  return taken;
}

test('follows an agent from a cursor', async (t) => {
  const { api, emit, pending } = await eventWorld(t);
  pending[one] = { mailbox: 1, chat_invites: 0, chat_unread: 0 };
  emit(one, 3);
  const stop = new AbortController();
  const events = followEvents({ baseUrl: api.url }, { aid: one, after: 1, signal: stop.signal });
  const [waiting, ...logged] = await take(events, 3);
  assert.deepEqual(waiting, {
    seq: null,
    event: 'pending',
    data: { [one]: { mailbox: 1, chat_invites: 0, chat_unread: 0 } },
  });
  assert.deepEqual(
    logged.map(({ seq, event }) => [seq, event]),
    [
      [2, 'chat.received'],
      [3, 'chat.received'],
    ],
  );
  stop.abort();
  await assert.rejects(events.next(), withCode('cancelled'));
});

test("throws the daemon's refusal, and an error if the daemon was never reachable", async (t) => {
  const { api } = await eventWorld(t);
  await assert.rejects(followEvents({ baseUrl: api.url }, { aid: unknown }).next(), withCode('not_found'));
  await assert.rejects(followEvents({ baseUrl: api.url }, { types: 'nothing' }).next(), withCode('invalid_request'));
  await assert.rejects(followEvents({ baseUrl: 'http://127.0.0.1:1' }, {}).next(), withCode('daemon_unreachable'));
});

/** A server that runs one script per request. */
async function scripted(t: TestContext, ...scripts: ((response: ServerResponse) => void)[]) {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers['last-event-id']?.toString());
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    scripts.shift()?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a broken stream resumes after the last event, also if only a position was received', async (t) => {
  const { asked, baseUrl } = await scripted(
    t,
    (response) => response.end('retry: 3000\n\nid: 7\n\n'),
    (response) => {
      response.write('id: 8\nevent: a\ndata: 1\n\nid: 9\nevent: a\nda');
      setImmediate(() => response.destroy());
    },
    (response) => response.write('id: 9\nevent: a\ndata: 2\n\n'),
  );
  const broken: string[] = [];
  const stop = new AbortController();
  const events = followEvents(
    { baseUrl },
    { retryMs: 1, signal: stop.signal, onBroken: (error) => broken.push(error.code) },
  );
  assert.deepEqual(await take(events, 2), [
    { seq: 8, event: 'a', data: 1 },
    { seq: 9, event: 'a', data: 2 },
  ]);
  assert.deepEqual(asked, [undefined, '7', '8']);
  assert.deepEqual(broken, ['daemon_unreachable', 'daemon_unreachable']);
  stop.abort();
  await assert.rejects(events.next(), withCode('cancelled'));
});

test('an event may have any line endings and arrive in any pieces', async (t) => {
  const text = ': here\r\nid: 4\r\nevent: a\r\ndata: {"b":\r\ndata: 1}\r\n\r\nid: x\rdata: 2\r\rdata: 3\n\n';
  const { baseUrl } = await scripted(t, (response) => {
    response.socket?.setNoDelay(true);
    const pieces = text.split('');
    const next = (): void => {
      const piece = pieces.shift();
      if (piece !== undefined) response.write(piece, next);
    };
    next();
  });
  const stop = new AbortController();
  const events = followEvents({ baseUrl }, { signal: stop.signal });
  assert.deepEqual(await take(events, 3), [
    { seq: 4, event: 'a', data: { b: 1 } },
    { seq: null, event: 'message', data: 2 },
    { seq: null, event: 'message', data: 3 },
  ]);
  stop.abort();
});

/** More than the maximum length of an event, in characters. */
const TOO_MUCH = 8 * 1024 * 1024;

for (const [what, piece] of [
  ['a line', 'x'.repeat(64 * 1024)],
  ['an event', `data: ${'x'.repeat(64 * 1024)}\n`],
] as const)
  test(`${what} without an end does not fill the memory: the stream is closed`, async (t) => {
    let written = 0;
    const { baseUrl } = await scripted(t, (response) => {
      response.write('data: ');
      const next = (): void => {
        written += piece.length;
        if (written > TOO_MUCH) response.end();
        else response.write(piece, (error) => (error instanceof Error ? undefined : next()));
      };
      next();
    });
    const stop = new AbortController();
    const events = followEvents({ baseUrl }, { signal: stop.signal, onBroken: () => stop.abort() });
    await assert.rejects(events.next(), withCode('protocol_error'));
  });

test("a stream whose events are no JSON is not the daemon's", async (t) => {
  const { baseUrl } = await scripted(t, (response) => response.write('data: {"a":\n\n'));
  await assert.rejects(followEvents({ baseUrl }, {}).next(), withCode('invalid_json'));
});
