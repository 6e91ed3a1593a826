import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventWorld, one, two, unknown } from '../../support/event-world.ts';
import { eventually } from '../../support/eventually.ts';
import { withCode } from '../../support/link-world.ts';

test('a stream over HTTP: its opening, then frames as events occur', async (t) => {
  const { open, emit, pending } = await eventWorld(t);
  pending[one] = { mailbox: 1, chat_invites: 0, chat_unread: 0 };
  const client = await open(`/agents/${one}/events`);
  assert.deepEqual(client.frames[0], {
    retry: '3000',
    event: 'pending',
    data: { [one]: { mailbox: 1, chat_invites: 0, chat_unread: 0 } },
  });
  emit();
  await client.until(({ events }) => events.length === 2);
  const [, event] = client.events;
  assert.equal(event?.id, '1');
  assert.equal(event?.event, 'chat.received');
  assert.deepEqual(Object.keys(event?.data ?? {}), ['type', 'at', 'aid', 'data']);
});

test('the header of a client that reconnects overrides the query', async (t) => {
  const { open, emit } = await eventWorld(t);
  emit(one, 4);
  const byQuery = await open('/events?last_event_id=2');
  await byQuery.until(({ events }) => events.length === 2);
  assert.deepEqual(
    byQuery.events.map(({ id }) => id),
    ['3', '4'],
  );
  const byHeader = await open('/events?last_event_id=2', { 'Last-Event-ID': '3' });
  await byHeader.until(({ events }) => events.length === 1);
  assert.deepEqual(
    byHeader.events.map(({ id }) => id),
    ['4'],
  );
});

test('event types are selected by a list', async (t) => {
  const { open, emit } = await eventWorld(t);
  const client = await open('/events?types=chat.received,%20mailbox.received');
  emit();
  await client.until(({ events }) => events.length === 1);
});

test('invalid input is refused with 400, an unknown agent with 404', async (t) => {
  const { api } = await eventWorld(t);
  for (const query of ['after_seq=1', 'last_event_id=x', 'last_event_id=-1', 'types=chat.receive', 'types=']) {
    const answer = await api.request('GET', `/agents/${one}/events?${query}`);
    assert.equal(answer.status, 400, query);
    const { error, message } = answer.json as { error: string; message: string };
    assert.equal(error, 'invalid_request');
    if (query === 'after_seq=1') assert.match(message, /use last_event_id instead of after_seq/);
  }
  const header = await api.request('GET', `/agents/${one}/events`, { headers: { 'last-event-id': 'x' } });
  assert.equal(header.status, 400);
  assert.equal((await api.request('GET', `/agents/${unknown}/events`)).status, 404);
});

test('a client that disconnects is removed', async (t) => {
  const { open, streams } = await eventWorld(t);
  const client = await open('/events');
  const other = await open('/events');
  assert.equal(streams.active, 2);
  client.close();
  await client.until(({ ended }) => ended);
  // The server is notified asynchronously, and the next stream may use another connection.
  while (streams.active > 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(other.ended, false);
});

test('polling pages through the buffer and reports gaps', async (t) => {
  const { poll, emit } = await eventWorld(t);
  assert.deepEqual(await poll({ aid: one }), { events: [], last_seq: 0, oldest_seq: 0, truncated: false });
  emit(one, 7);
  const page = (await poll({ aid: one })) as { events: { seq: number; data: unknown }[]; last_seq: number };
  assert.deepEqual(
    page.events.map(({ seq }) => seq),
    [3, 4, 5, 6, 7],
  );
  assert.deepEqual(page.events[0]?.data, { peer: two, seq: 2 });
  assert.deepEqual(await poll({ aid: one, after_seq: page.last_seq }), {
    events: [],
    last_seq: 7,
    oldest_seq: 3,
    truncated: false,
  });
  assert.deepEqual(await poll({ aid: one, after_seq: 1 }), {
    events: [],
    last_seq: 7,
    oldest_seq: 3,
    truncated: true,
  });
  await assert.rejects(poll({ aid: unknown }), withCode('not_found'));
});

test('events of the node have a separate stream, and can be polled too', async (t) => {
  const { api, open, nodeEvents } = await eventWorld(t);
  nodeEvents.emit('network', { ready: true, peers: 3 });
  const live = await open('/node/events?types=config,call.refused');
  const all = await open('/node/events?last_event_id=0');
  nodeEvents.emit('call.refused', { caller: two, kind: 'call', code: 'access_denied' }, one);
  await live.until(({ events }) => events.length === 1);
  await all.until(({ events }) => events.length === 2);
  const [refused] = live.events;
  assert.ok(refused !== undefined);
  const { at, ...rest } = refused.data as { at: string };
  assert.ok(Date.parse(at) > 0);
  const data = { caller: two, kind: 'call', code: 'access_denied' };
  assert.deepEqual(rest, { type: 'call.refused', aid: one, data });
  const { json } = await api.request('GET', '/node/events/recent');
  const { events, last_seq, truncated } = json as {
    events: { seq: number; at: string }[];
    last_seq: number;
    truncated: boolean;
  };
  assert.equal(truncated, false);
  assert.deepEqual(
    events.map(({ at: _at, ...one }) => one),
    [
      { seq: last_seq - 1, type: 'network', aid: two, data: { ready: true, peers: 3 } },
      { seq: last_seq, type: 'call.refused', aid: one, data },
    ],
  );
  const behind = await api.request('GET', `/node/events/recent?after_seq=${last_seq}`);
  assert.deepEqual(behind.json, { events: [], last_seq, truncated: false });
  // A cursor of an earlier run.
  const gone = await api.request('GET', '/node/events/recent?after_seq=1');
  assert.deepEqual(gone.json, { ...(json as object), truncated: true });
  assert.equal((await api.request('GET', '/node/events?types=chat.unread')).status, 400);
});

test('a poll waits for an event, and ends when its client disconnects or the daemon stops', async (t) => {
  const { api, waits, emit } = await eventWorld(t);
  const poll = (after_seq: number, signal?: AbortSignal) =>
    fetch(`${api.url}/mcp/call`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ tool: 'svc_events_poll', args: { aid: one, after_seq, wait_s: 60 } }),
      ...(signal === undefined ? {} : { signal }),
    });
  const untilWaiting = (count: number) => eventually(`${count} polls wait`, () => waits.active === count);
  const answered = poll(0);
  await untilWaiting(1);
  emit();
  assert.partialDeepStrictEqual(await (await answered).json(), { events: [{ type: 'chat.received' }], last_seq: 1 });

  const controller = new AbortController();
  const left = poll(1, controller.signal);
  await untilWaiting(1);
  controller.abort();
  await assert.rejects(left, { name: 'AbortError' });
  await untilWaiting(0);

  const stopped = poll(1);
  await untilWaiting(1);
  await waits.stop();
  assert.deepEqual(await (await stopped).json(), { events: [], last_seq: 1, oldest_seq: 1, truncated: false });
});
