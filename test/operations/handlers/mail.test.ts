import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Note } from '../../../src/capabilities/notes/types.ts';
import { MAX_NOTES_PAGE, NOTE_TYPE } from '../../../src/foundation/domain/notes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type MailHandlerDependencies, mailHandlers } from '../../../src/operations/handlers/mail.ts';
import { MAILBOX_PAGE_DEFAULT, mailOperations } from '../../../src/operations/mail.ts';
import { testAid } from '../../support/agents.ts';
import { READ_ONCE } from '../../support/read-once.ts';
import { operationRunner } from '../../support/run-operation.ts';

const [AGENT, PEER] = [testAid(1), testAid(2)];
const PARAMS = { params: { aid: AGENT.toUpperCase() } };
const BODY = Uint8Array.of(0, 255, 62, 63);
const NOTE: Note = { messageId: '07'.repeat(32), sender: PEER, msgType: 3, body: BODY, sentAt: Date.UTC(2026, 1, 3) };
const SHOWN = {
  message_id: NOTE.messageId,
  sender: PEER,
  msg_type: 3,
  body_base64: 'AP8+Pw==',
  sent_at: '2026-02-03T00:00:00.000Z',
};

const SENT_AT = Date.UTC(2026, 1, 3);
const QUEUED = {
  id: 9,
  aid: AGENT,
  messageId: new Uint8Array(32).fill(7),
  recipient: PEER,
  msgType: 3,
  body: BODY,
  nonce: new Uint8Array(16),
  sentAt: SENT_AT,
  until: SENT_AT + 7 * 24 * 3600_000,
  dueAt: SENT_AT + 5000,
  attempts: 1,
};

/** Mailboxes that record their calls and the outcome of each delivery. */
function setUp(more: Partial<MailHandlerDependencies['notes']> = {}) {
  const asked: unknown[] = [];
  const notes: MailHandlerDependencies['notes'] = {
    post: async (...args) => {
      asked.push(args);
      const settle = (arrived: boolean): void => void asked.push(arrived ? 'settled' : 'taken back');
      return { messageId: NOTE.messageId, replicas: 5, delivered: true, queued: false, settle };
    },
    list: (...args) => {
      asked.push(args);
      return { notes: [NOTE], nextCursor: '7' };
    },
    listRead: () => [],
    remove: (...args) => void asked.push(args),
    take: (aid) => {
      asked.push(aid);
      const [confirm, giveBack] = ['confirmed', 'given back'].map((what) => () => void asked.push(what));
      assert.ok(confirm !== undefined && giveBack !== undefined);
      return { notes: [NOTE], more: true, confirm, giveBack };
    },
    queued: (...args) => {
      asked.push(args);
      return { notes: [QUEUED], nextCursor: '9' };
    },
    cancelQueued: (...args) => void asked.push(args),
    ...more,
  };
  return { asked, run: operationRunner(mailOperations, mailHandlers({ notes, waits: READ_ONCE })) };
}

test('a note is sent as the bytes of its base64, with both AIDs in canonical form', async () => {
  const { run, asked } = setUp();
  const body = { recipient: PEER.toUpperCase(), msg_type: 3, body_base64: 'AP8+Pw==' };
  assert.deepEqual(await run('mailboxSend', { ...PARAMS, body }), {
    ok: true,
    message_id: NOTE.messageId,
    replicas: 5,
    delivered: true,
    queued: false,
  });
  assert.deepEqual(asked, [[AGENT, PEER, 3, BODY], 'settled']);
});

test('a body that is not standard base64, or a type over four bytes, is not sent', async () => {
  const { run, asked } = setUp();
  const send = (body: object) => run('mailboxSend', { ...PARAMS, body });
  for (const text of ['!', 'AP8-Pw==', 'AP8+Px', 'A', 'AP8+Pw==\n'])
    await assert.rejects(send({ recipient: PEER, msg_type: 3, body_base64: text }), {
      code: 'invalid_request',
      details: { in: 'body', path: '/body_base64' },
    });
  for (const msg_type of [-1, 2 ** 32, 1.5])
    await assert.rejects(send({ recipient: PEER, msg_type, body_base64: '' }), { code: 'invalid_request' });
  await assert.rejects(send({ recipient: 'aid1x', msg_type: 3, body_base64: '' }), { code: 'bad_aid' });
  assert.deepEqual(asked, []);
  await send({ recipient: PEER, msg_type: 0, body_base64: '' });
  await send({ recipient: PEER, msg_type: 2 ** 32 - 1, body_base64: '' });
});

test('a send is settled after its response was sent or failed', async () => {
  const { run, asked } = setUp();
  const body = { recipient: PEER, msg_type: 3, body_base64: '' };
  let settled: (arrived: boolean) => void = () => assert.fail('not settled');
  await run('mailboxSend', { ...PARAMS, body }, { onAnswered: (then) => (settled = then) });
  assert.equal(asked.length, 1);
  settled(false);
  assert.deepEqual(asked.slice(1), ['taken back']);
});

test('notes are listed in pages, and remain stored', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('mailboxList', PARAMS), { messages: [SHOWN], next_cursor: '7' });
  await run('mailboxList', { ...PARAMS, query: { limit: String(MAX_NOTES_PAGE), cursor: '7' } });
  assert.deepEqual(asked, [
    [AGENT, MAILBOX_PAGE_DEFAULT, undefined],
    [AGENT, MAX_NOTES_PAGE, '7'],
  ]);
  for (const query of [{ limit: '0' }, { limit: String(MAX_NOTES_PAGE + 1) }, { cursor: '1'.repeat(33) }, { x: '1' }])
    await assert.rejects(run('mailboxList', { ...PARAMS, query }), { code: 'invalid_request' });
});

test('the last page has no cursor', async () => {
  const { run } = setUp({ list: () => ({ notes: [], nextCursor: null }) });
  assert.deepEqual(await run('mailboxList', PARAMS), { messages: [] });
});

test('polled notes are removed if the response arrives, and returned to the mailbox otherwise', async () => {
  const { run, asked } = setUp();
  assert.deepEqual(await run('mailboxPoll', PARAMS), { messages: [SHOWN], has_more: true });
  assert.deepEqual(asked, [AGENT, 'confirmed'], 'delivered, as the surface cannot detect the arrival');
  for (const [arrived, outcome] of [
    [true, 'confirmed'],
    [false, 'given back'],
  ] as const) {
    asked.length = 0;
    let settled: (arrived: boolean) => void = () => assert.fail('not settled');
    await run('mailboxPoll', PARAMS, { onAnswered: (then) => (settled = then) });
    assert.deepEqual(asked, [AGENT], 'not yet settled before the response was sent');
    settled(arrived);
    assert.deepEqual(asked, [AGENT, outcome]);
  }
});

test('the mailbox of an unknown agent is an error', async () => {
  const absent = () => {
    throw new SvcError('not_found');
  };
  const { run } = setUp({ list: absent, take: absent, post: async () => absent() });
  await assert.rejects(run('mailboxList', PARAMS), { code: 'not_found' });
  await assert.rejects(run('mailboxPoll', PARAMS), { code: 'not_found' });
  const body = { recipient: PEER, msg_type: 3, body_base64: '' };
  await assert.rejects(run('mailboxSend', { ...PARAMS, body }), { code: 'not_found' });
  await assert.rejects(run('mailboxList', { params: { aid: 'me' } }), { code: 'bad_aid' });
});

test('one note is deleted by its id, and other texts are refused', async () => {
  const { run, asked } = setUp();
  const params = { aid: AGENT.toUpperCase(), message_id: NOTE.messageId };
  assert.deepEqual(await run('mailboxDelete', { params }), { ok: true });
  assert.deepEqual(asked, [[AGENT, NOTE.messageId]]);
  await assert.rejects(
    run('mailboxDelete', { params: { ...params, message_id: 'poll' } }),
    (error) => error instanceof SvcError && error.code === 'invalid_request',
  );
});

test('a note that no other node has is answered with 202, listed and withdrawn', async () => {
  const queued = { messageId: NOTE.messageId, replicas: 0, delivered: false, queued: true, settle: () => {} };
  const { run, asked } = setUp({ post: async () => queued });
  let status = 200;
  const body = { recipient: PEER, msg_type: 3, body_base64: '' };
  const answer = await run('mailboxSend', { ...PARAMS, body }, { setStatus: (chosen) => void (status = chosen) });
  assert.deepEqual(answer, { ok: true, message_id: NOTE.messageId, replicas: 0, delivered: false, queued: true });
  assert.equal(status, 202);
  assert.deepEqual(await run('mailboxQueued', PARAMS), {
    messages: [
      {
        message_id: NOTE.messageId,
        recipient: PEER,
        msg_type: 3,
        size: 4,
        sent_at: '2026-02-03T00:00:00.000Z',
        expires_at: '2026-02-10T00:00:00.000Z',
        next_attempt_at: '2026-02-03T00:00:05.000Z',
        attempts: 1,
      },
    ],
    next_cursor: '9',
  });
  const params = { aid: AGENT, message_id: NOTE.messageId };
  assert.deepEqual(await run('mailboxQueuedDelete', { params }), { ok: true });
  assert.deepEqual(asked, [
    [AGENT, MAILBOX_PAGE_DEFAULT, undefined],
    [AGENT, NOTE.messageId],
  ]);
});

test('a note is text by default, and the result has both text and base64', async () => {
  const TEXT: Note = { ...NOTE, msgType: NOTE_TYPE.text, body: Buffer.from('Grüße\n') };
  const { run, asked } = setUp({ list: () => ({ notes: [TEXT], nextCursor: null }) });
  await run('mailboxSend', { ...PARAMS, body: { recipient: PEER, text: 'Grüße\n' } });
  assert.deepEqual(asked, [[AGENT, PEER, NOTE_TYPE.text, Buffer.from('Grüße\n')], 'settled']);
  const { messages } = (await run('mailboxList', PARAMS)) as { messages: readonly object[] };
  assert.deepEqual(messages, [{ ...SHOWN, msg_type: NOTE_TYPE.text, body_base64: 'R3LDvMOfZQo=', text: 'Grüße\n' }]);
});

test('a note without a body, with two bodies, or with broken text is refused', async () => {
  const { run } = setUp();
  for (const body of [{}, { text: 'a', body_base64: 'YQ==' }, { text: '\ud800' }])
    await assert.rejects(
      run('mailboxSend', { ...PARAMS, body: { recipient: PEER, ...body } }),
      (error) => error instanceof SvcError && error.code === 'invalid_request',
      JSON.stringify(body),
    );
});
