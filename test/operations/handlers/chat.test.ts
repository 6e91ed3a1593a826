import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Contact } from '../../../src/capabilities/chat/types.ts';
import { MAX_EXCERPT_CHARS } from '../../../src/foundation/display-text.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { ChatEntry } from '../../../src/foundation/store/chat-log.ts';
import { CHAT_PAGE_DEFAULT, CHAT_PAGE_MAX, chatOperations } from '../../../src/operations/chat.ts';
import { type ChatHandlerDependencies, chatHandlers } from '../../../src/operations/handlers/chat.ts';
import { testAid } from '../../support/agents.ts';
import { ACT_ONCE, READ_ONCE } from '../../support/read-once.ts';
import { operationRunner } from '../../support/run-operation.ts';

const [AGENT, PEER, OTHER] = [testAid(1), testAid(2), testAid(3)];
const PARAMS = { params: { aid: AGENT.toUpperCase() } };
const WITH_PEER = { ...PARAMS, body: { peer: PEER.toUpperCase() } };
const AT = Date.UTC(2026, 1, 3);
const SHOWN_AT = '2026-02-03T00:00:00.000Z';
const OBJECT_ID = 'ab'.repeat(32);

type Chat = ChatHandlerDependencies['chat'];

/** A chat that records its calls. */
function setUp(more: Partial<Chat> = {}) {
  const asked: unknown[][] = [];
  const note = (...what: unknown[]): void => void asked.push(what);
  const chat: Chat = {
    request: (...args) => (note('request', ...args), 'out_pending'),
    accept: (...args) => (note('accept', ...args), 'friends'),
    refuse: (...args) => note('refuse', ...args),
    remove: (...args) => note('remove', ...args),
    block: (...args) => note('block', ...args),
    send: async (aid, peer, draft) => (note('send', aid, peer, draft), { seq: 7, status: 'queued' }),
    entry: () => null,
    read: (...args) => (note('read', ...args), { entries: [], scannedTo: 9, hasMore: true, readCursor: 4, unread: 5 }),
    readBefore: (...args) => (
      note('readBefore', ...args), { entries: [], scannedTo: 0, hasMore: false, readCursor: 4, unread: 5 }
    ),
    markRead: (...args) => (note('markRead', ...args), { readCursor: 8, unread: 2 }),
    contacts: (...args) => (note('contacts', ...args), []),
    ...more,
  };
  return { asked, run: operationRunner(chatOperations, chatHandlers({ chat, waits: READ_ONCE, repeats: ACT_ONCE })) };
}

test('a relationship is requested and changed between both agents, in canonical form', async () => {
  const { run, asked } = setUp();
  const request = { ...PARAMS, body: { peer: PEER.toUpperCase(), note: 'It is me' } };
  assert.deepEqual(await run('chatRequest', request), { state: 'out_pending' });
  assert.deepEqual(await run('chatRequest', WITH_PEER), { state: 'out_pending' });
  assert.deepEqual(await run('chatAccept', WITH_PEER), { state: 'friends' });
  for (const name of ['chatRefuse', 'chatRemove', 'chatBlock'] as const)
    assert.deepEqual(await run(name, WITH_PEER), { ok: true });
  assert.deepEqual(asked, [
    ['request', AGENT, PEER, 'It is me'],
    ['request', AGENT, PEER, ''],
    ['accept', AGENT, PEER],
    ['refuse', AGENT, PEER],
    ['remove', AGENT, PEER],
    ['block', AGENT, PEER],
  ]);
});

test('a relationship that changed meanwhile is an error', async () => {
  const { run } = setUp({ request: () => 'none', accept: () => 'none' });
  await assert.rejects(run('chatRequest', WITH_PEER), { code: 'wrong_state' });
  await assert.rejects(run('chatAccept', WITH_PEER), { code: 'wrong_state' });
});

test('invalid input is refused before any call', async () => {
  const { run, asked } = setUp();
  for (const name of ['chatRequest', 'chatAccept', 'chatRefuse', 'chatRemove', 'chatBlock', 'chatMarkRead'] as const) {
    await assert.rejects(run(name, PARAMS), { code: 'invalid_request' }, name);
    await assert.rejects(run(name, { ...PARAMS, body: { peer: 'aid1x' } }), { code: 'bad_aid' }, name);
    await assert.rejects(run(name, { params: { aid: 'me' }, body: { peer: PEER } }), { code: 'bad_aid' }, name);
  }
  for (const body of [{ scanned_to: -1 }, { scanned_to: 1.5 }, { extra: true }])
    await assert.rejects(run('chatMarkRead', { ...PARAMS, body: { peer: PEER, ...body } }), {
      code: 'invalid_request',
    });
  const params = { aid: AGENT, peer: PEER };
  for (const query of [{ limit: '0' }, { limit: String(CHAT_PAGE_MAX + 1) }, { after_seq: '-1' }, { after_seq: 'x' }])
    await assert.rejects(run('chatRead', { params, query }), { code: 'invalid_request' });
  assert.deepEqual(asked, []);
});

test('a text, or a file by its object, may be sent remotely', async () => {
  const { run, asked } = setUp();
  const send = (body: object, origin: 'local' | 'remote' | 'remote_admin') =>
    run('chatSend', { ...PARAMS, body: { peer: PEER, ...body } }, { origin });
  assert.deepEqual(await send({ text: 'hello' }, 'remote_admin'), { seq: 7, status: 'queued' });
  await send({ text: 'look', object_id: OBJECT_ID }, 'remote');
  assert.deepEqual(asked, [
    ['send', AGENT, PEER, { text: 'hello', path: undefined, objectId: undefined }],
    ['send', AGENT, PEER, { text: 'look', path: undefined, objectId: OBJECT_ID }],
  ]);
});

test('only local programs may send a file by its path', async () => {
  const { run, asked } = setUp();
  const parts = { ...PARAMS, body: { peer: PEER, path: '/etc/passwd' } };
  for (const origin of ['remote', 'remote_admin'] as const)
    await assert.rejects(run('chatSend', parts, { origin }), { code: 'local_only' });
  assert.deepEqual(asked, []);
  await run('chatSend', parts);
  assert.deepEqual(asked, [['send', AGENT, PEER, { text: undefined, path: '/etc/passwd', objectId: undefined }]]);
});

test('a conversation is read from a position, with the default page size', async () => {
  const { run, asked } = setUp();
  const params = { aid: AGENT, peer: PEER.toUpperCase() };
  const page = { entries: [], scanned_to: 9, has_more: true, read_cursor: 4, unread_count: 5 };
  assert.deepEqual(await run('chatRead', { params }), page);
  await run('chatRead', { params, query: { after_seq: '3', limit: String(CHAT_PAGE_MAX) } });
  assert.deepEqual(asked, [
    ['read', AGENT, PEER, 0, CHAT_PAGE_DEFAULT],
    ['read', AGENT, PEER, 3, CHAT_PAGE_MAX],
  ]);
});

test('entries have author, time and content, and the place of a file', async () => {
  const common = { id: Uint8Array.of(0, 1, 255), at: AT };
  const file = { objectId: OBJECT_ID, name: 'a.txt', size: 12 };
  const entries: ChatEntry[] = [
    { ...common, seq: 1, incoming: true, text: 'hello', file: null, status: 'received' },
    { ...common, seq: 2, incoming: false, text: null, file, status: 'queued' },
    { ...common, seq: 3, incoming: true, text: 'look', file, status: 'received' },
  ];
  const { run } = setUp({ read: () => ({ entries, scannedTo: 3, hasMore: false, readCursor: 0, unread: 2 }) });
  const shown = { id: '0001ff', at: SHOWN_AT };
  const inFile = { kind: 'file', object_id: OBJECT_ID, name: 'a.txt', size: 12 };
  assert.deepEqual(await run('chatRead', { params: { aid: AGENT, peer: PEER } }), {
    entries: [
      { ...shown, seq: 1, dir: 'in', kind: 'text', text: 'hello', status: 'received' },
      { ...shown, ...inFile, seq: 2, dir: 'out', url: `svc://${AGENT}/cas/${OBJECT_ID}`, status: 'queued' },
      {
        ...shown,
        ...inFile,
        seq: 3,
        dir: 'in',
        text: 'look',
        url: `svc://${PEER}/cas/${OBJECT_ID}`,
        status: 'received',
      },
    ],
    scanned_to: 3,
    has_more: false,
    read_cursor: 0,
    unread_count: 2,
  });
});

test('a conversation is marked as read up to a position, or not at all', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('chatMarkRead', { ...PARAMS, body: { peer: PEER, scanned_to: 6 } }), {
    read_cursor: 8,
    unread_count: 2,
  });
  await run('chatMarkRead', WITH_PEER);
  assert.deepEqual(asked, [
    ['markRead', AGENT, PEER, 6],
    ['markRead', AGENT, PEER, 0],
  ]);
});

test('contacts are grouped by state, with the data for each state', async () => {
  const contact = (state: Contact['state'], more: Partial<Contact> = {}): Contact => ({
    peer: PEER,
    state,
    since: AT,
    note: 'a note',
    unread: 3,
    lastAt: null,
    lastSeq: 0,
    last: null,
    ...more,
  });
  const spoken: ChatEntry = {
    ...{ seq: 7, id: new Uint8Array(16), incoming: true, status: 'sent', at: AT },
    ...{ text: 'x'.repeat(1000), file: null },
  };
  const { run } = setUp({
    contacts: (aid, state) =>
      aid === AGENT
        ? [
            contact(state),
            ...(state === 'friends'
              ? [contact(state, { peer: OTHER, since: AT + 1, lastAt: AT, lastSeq: 7, last: spoken })]
              : []),
          ]
        : [],
  });
  const friend = { peer: PEER, since: SHOWN_AT, unread_count: 3 };
  const waiting = { peer: PEER, since: SHOWN_AT, note: 'a note' };
  assert.deepEqual(await run('chatContacts', PARAMS), {
    friends: [
      { ...friend, last_at: null, last_seq: 0, last: null },
      {
        ...friend,
        peer: OTHER,
        since: '2026-02-03T00:00:00.001Z',
        last_at: SHOWN_AT,
        last_seq: 7,
        last: { dir: 'in', at: SHOWN_AT, text: 'x'.repeat(MAX_EXCERPT_CHARS), status: 'sent' },
      },
    ],
    out_pending: [waiting],
    in_pending: [waiting],
    blocked: [{ peer: PEER, since: SHOWN_AT }],
  });
  type Answer = Record<string, unknown[]> & { next_cursor?: string };
  const counts: number[][] = [];
  let cursor: string | undefined;
  do {
    const page = (await run('chatContacts', { ...PARAMS, query: { limit: 2, cursor } })) as Answer;
    counts.push(['friends', 'out_pending', 'in_pending', 'blocked'].map((state) => page[state]?.length ?? 0));
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  assert.deepEqual(counts, [
    [2, 0, 0, 0],
    [0, 1, 1, 0],
    [0, 0, 0, 1],
  ]);
});

test('refusals of chat keep their codes', async () => {
  const refuse = (): never => {
    throw new SvcError('not_friends');
  };
  const { run } = setUp({ send: async () => refuse(), markRead: refuse, block: refuse });
  await assert.rejects(run('chatSend', { ...PARAMS, body: { peer: PEER, text: 'x' } }), { code: 'not_friends' });
  await assert.rejects(run('chatMarkRead', WITH_PEER), { code: 'not_friends' });
  await assert.rejects(run('chatBlock', WITH_PEER), { code: 'not_friends' });
});

test('a conversation is read from its end too, but not from both ends', async () => {
  const { run, asked } = setUp();
  const params = { aid: AGENT, peer: PEER };
  await run('chatRead', { params, query: { before_seq: '9', limit: '3' } });
  assert.deepEqual(asked, [['readBefore', AGENT, PEER, 9, 3]]);
  await assert.rejects(
    run('chatRead', { params, query: { before_seq: '9', after_seq: '3' } }),
    (error) => error instanceof SvcError && error.code === 'invalid_request',
  );
});
