/** Notes and chat between real daemons, over REST, tools and the command line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready, TestNetwork } from '../support/network.ts';

interface Message {
  readonly message_id: string;
  readonly sender: string;
  readonly msg_type: number;
  readonly body_base64: string;
  readonly sent_at: string;
}
interface Mailbox {
  readonly messages: readonly Message[];
  readonly has_more?: boolean;
}
interface Sent {
  readonly message_id: string;
  readonly replicas: number;
  readonly delivered: boolean;
}
interface Entry {
  readonly seq: number;
  readonly dir: 'in' | 'out';
  readonly text?: string;
  readonly status: string;
  readonly url?: string;
}
interface Conversation {
  readonly entries: readonly Entry[];
  readonly scanned_to: number;
  readonly has_more: boolean;
  readonly read_cursor: number;
  readonly unread_count: number;
}
interface AgentView {
  readonly pending?: Record<string, Record<string, number>>;
}

/** More notes than three nodes and two agents ever have records. */
const MANY = 25;
const MAX_OTHERS = 10;

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** An agent that is published. */
async function published(daemon: TestDaemon): Promise<string> {
  const aid = await daemon.newAgent();
  await daemon.call('POST', `/agents/${aid}/publish`);
  return aid;
}

function send(daemon: TestDaemon, aid: string, recipient: string, text: string): Promise<Sent> {
  const body = { recipient, msg_type: 3, body_base64: base64(text) };
  return daemon.call<Sent>('POST', `/agents/${aid}/mailbox/send`, body);
}

function mailbox(daemon: TestDaemon, aid: string): Promise<Mailbox> {
  return daemon.call<Mailbox>('GET', `/agents/${aid}/mailbox`);
}

/** Waits until a mailbox has this many notes, and returns them. */
function arrived(daemon: TestDaemon, aid: string, count: number): Promise<readonly Message[]> {
  return eventually(`${count} notes`, async () => {
    const { messages } = await mailbox(daemon, aid);
    return messages.length >= count && messages;
  });
}

function conversation(daemon: TestDaemon, aid: string, peer: string): Promise<Conversation> {
  return daemon.call<Conversation>('GET', `/agents/${aid}/chat/peers/${peer}`);
}

function chat<T = unknown>(daemon: TestDaemon, aid: string, act: string, body: object): Promise<T> {
  return daemon.call<T>('POST', `/agents/${aid}/chat/${act}`, body);
}

/** Makes two agents friends. */
async function befriend(a: TestDaemon, alice: string, b: TestDaemon, bob: string): Promise<void> {
  assert.deepEqual(await chat(a, alice, 'request', { peer: bob, note: 'It is me' }), { state: 'out_pending' });
  await eventually('the request', async () => {
    const { in_pending } = await b.call<{ in_pending: { peer: string }[] }>('GET', `/agents/${bob}/chat/contacts`);
    return in_pending.some(({ peer }) => peer === alice);
  });
  assert.deepEqual(await chat(b, bob, 'accept', { peer: alice }), { state: 'friends' });
  await eventually('the answer', async () => {
    const { friends } = await a.call<{ friends: { peer: string }[] }>('GET', `/agents/${alice}/chat/contacts`);
    return friends.some(({ peer }) => peer === bob);
  });
}

test('a note: sent, listed, polled once, counted, and removed from the network', async () => {
  await using network = await TestNetwork.start(3);
  const [a, b] = [network.at(1), network.at(2)];
  const [alice, bob] = [await published(a), await published(b)];
  const sent = await send(a, alice, bob, 'hello');
  // On a machine that is slow for a moment the network gets the note first.
  assert.ok(sent.delivered || sent.replicas > 0);
  const messages = await arrived(b, bob, 1);
  const [message] = messages;
  assert.deepEqual(messages, [
    {
      message_id: sent.message_id,
      sender: alice,
      msg_type: 3,
      body_base64: base64('hello'),
      text: 'hello',
      sent_at: message?.sent_at,
    },
  ]);
  const view = await b.call<AgentView>('GET', `/agents/${bob}`);
  assert.deepEqual(view.pending, { [bob]: { mailbox: 1, chat_invites: 0, chat_unread: 0 } });
  const events = await b.call<{ events: { type: string; data: unknown }[] }>('POST', '/mcp/call', {
    tool: 'svc_events_poll',
    args: { aid: bob, after_seq: 0 },
  });
  assert.deepEqual(
    events.events.map(({ type, data }) => ({ type, data })),
    [{ type: 'mailbox.received', data: { count: 1, message_ids: [sent.message_id] } }],
  );
  const polled = await b.call<Mailbox>('POST', `/agents/${bob}/mailbox/poll`, {});
  assert.deepEqual(polled, { messages, has_more: false });
  assert.deepEqual((await b.call<Mailbox>('POST', `/agents/${bob}/mailbox/poll`, {})).messages, []);
  assert.deepEqual((await mailbox(b, bob)).messages, []);
  const stored = async (): Promise<number[]> => {
    const stores = await Promise.all(network.daemons.map((d) => d.call<{ records: number }>('GET', '/debug/store')));
    return stores.map(({ records }) => records);
  };
  for (let i = 0; i < MANY; i++) await send(a, alice, bob, `another ${i}`);
  await eventually('the copies are stored', async () => (await stored()).some((count) => count >= MANY));
  await b.call('POST', `/agents/${bob}/mailbox/poll`, {});
  await eventually('the copies are removed', async () => (await stored()).every((count) => count <= MAX_OTHERS));
});

test('errors of notes and chat have their own codes', async () => {
  await using daemon = await TestDaemon.start();
  const [alice, bob] = [await daemon.newAgent(), await daemon.newAgent()];
  const stranger = 'aid1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0sw0gs0p';
  const code = async (path: string, body: object): Promise<string> => {
    const { status, body: answer } = await daemon.request('POST', `/agents/${path}`, body);
    return `${status} ${(answer as { error: string }).error}`;
  };
  const note = { recipient: bob, msg_type: 1, body_base64: 'eA==' };
  assert.equal(await code(`${alice}/mailbox/send`, { ...note, body_base64: '?' }), '400 invalid_request');
  assert.equal(await code(`${alice}/mailbox/send`, { ...note, recipient: 'x' }), '400 bad_aid');
  assert.equal(
    await code(`${alice}/mailbox/send`, { ...note, body_base64: base64('x'.repeat(32 * 1024 + 1)) }),
    '413 too_large',
  );
  assert.equal(await code(`${alice}/chat/request`, { peer: alice }), '409 self');
  assert.equal(await code(`${alice}/chat/accept`, { peer: bob }), '409 wrong_state');
  assert.equal(await code(`${alice}/chat/send`, { peer: bob, text: 'x' }), '403 not_friends');
  assert.equal(await code(`${alice}/chat/request`, { peer: bob, note: 'x'.repeat(281) }), '413 too_large');
  const parsed = await daemon.request('GET', `/agents/${stranger}/mailbox`);
  assert.ok(parsed.status === 404 || parsed.status === 400);
});

test('a recipient that starts later, and one that moved, get their pending notes', async () => {
  await using network = await TestNetwork.start(3);
  const [a, b] = [network.at(1), network.at(2)];
  const [alice, bob] = [await published(a), await published(b)];
  const { operational_private_key_hex, delegation_proof_hex } = await b.call<Record<string, string>>(
    'GET',
    `/agents/${bob}/export`,
  );
  await send(a, alice, bob, 'you are here');
  await b.kill();
  const sent = await send(a, alice, bob, 'you are away');
  assert.equal(sent.delivered, false);
  assert.ok(sent.replicas >= 1);
  await using elsewhere = await TestDaemon.start({ bootstrap: [network.at(0).dhtAddress] });
  await ready(elsewhere);
  await elsewhere.call('POST', '/agents', { operational_private_key_hex, delegation_proof_hex });
  const found = await arrived(elsewhere, bob, 2);
  assert.deepEqual(
    new Set(found.map(({ body_base64 }) => Buffer.from(body_base64, 'base64').toString())),
    new Set(['you are here', 'you are away']),
  );
  await using back = await TestDaemon.start({ dataDir: b.dataDir, bootstrap: [network.at(0).dhtAddress] });
  const again = await arrived(back, bob, 2);
  assert.equal(again.length, 2);
  assert.equal(again.filter(({ message_id }) => message_id === sent.message_id).length, 1);
});

test('chat over REST and tools: request, answer, texts, counters, marks, closing', async () => {
  await using network = await TestNetwork.start(2);
  const [a, b] = [network.at(0), network.at(1)];
  const [alice, bob] = [await published(a), await published(b)];
  await befriend(a, alice, b, bob);
  /** A send waits a limited time for the acknowledgment. */
  const arrives = (daemon: TestDaemon, aid: string, peer: string, seq: number): Promise<unknown> =>
    eventually(`#${seq} was delivered`, async () => {
      const { entries } = await conversation(daemon, aid, peer);
      return entries.some((entry) => entry.seq === seq && entry.status === 'sent');
    });
  assert.equal((await chat<Entry>(a, alice, 'send', { peer: bob, text: 'one' })).seq, 1);
  await arrives(a, alice, bob, 1);
  const tool = await b.call<Record<string, unknown>>('POST', '/mcp/call', {
    tool: 'chat_send',
    args: { aid: bob, peer: alice, text: 'two' },
  });
  assert.equal(tool['seq'], 2);
  await arrives(b, bob, alice, 2);
  const view = await b.call<AgentView>('GET', `/agents/${bob}`);
  assert.deepEqual(view.pending, { [bob]: { mailbox: 0, chat_invites: 0, chat_unread: 1 } });
  const read = await conversation(b, bob, alice);
  assert.deepEqual(
    read.entries.map(({ seq, dir, text, status }) => [seq, dir, text, status]),
    [
      [1, 'in', 'one', 'received'],
      [2, 'out', 'two', 'sent'],
    ],
  );
  assert.deepEqual([read.scanned_to, read.has_more, read.read_cursor, read.unread_count], [2, false, 0, 1]);
  assert.deepEqual(await chat(b, bob, 'mark-read', { peer: alice, scanned_to: read.scanned_to }), {
    read_cursor: 2,
    unread_count: 0,
  });
  assert.equal((await b.call<AgentView>('GET', `/agents/${bob}`)).pending, undefined);
  assert.deepEqual(await chat(b, bob, 'remove', { peer: alice }), { ok: true });
  await eventually('the chat is closed', async () => {
    const answer = await a.request('POST', `/agents/${alice}/chat/send`, { peer: bob, text: 'still?' });
    return answer.status === 403;
  });
});

test('a chat request does not use the mailbox, and only local callers can send a file by its path', async () => {
  await using network = await TestNetwork.start(2);
  const [a, b] = [network.at(0), network.at(1)];
  const [alice, bob] = [await published(a), await published(b)];
  await befriend(a, alice, b, bob);
  assert.deepEqual((await mailbox(b, bob)).messages, []);
  const refused = await a.request('POST', `/agents/${alice}/chat/send`, { peer: bob, path: '/etc/hostname' });
  assert.equal((refused.body as { error: string }).error, 'invalid_request');
});

test('the command line sends, lists and polls notes, and chats; foreign text cannot control the terminal', async () => {
  await using network = await TestNetwork.start(2);
  const [a, b] = [network.at(0), network.at(1)];
  const [alice, bob] = [await published(a), await published(b)];
  const id = await svcOk(a, '--quiet', 'note', 'send', alice, bob, '--text', 'hi \u001b[31mred\u0007');
  await arrived(b, bob, 1);
  await svcOk(a, 'note', 'send', alice, bob, base64('plain'));
  await arrived(b, bob, 2);
  const listed = await svcJson<Mailbox>(b, 'note', 'list', bob);
  assert.deepEqual(
    listed.messages.map(({ message_id, msg_type }) => [message_id === id, msg_type]),
    [
      [true, 3],
      [false, 1],
    ],
  );
  const shown = await svcOk(b, 'note', 'poll', bob, '-y');
  assert.ok(shown.includes('hi \\u{1b}[31mred\\u{7}') && shown.includes('plain'));
  assert.equal(await svcOk(b, 'note', 'poll', bob, '-y'), 'No notes.');
  assert.equal((await svc(a, ['note', 'send', alice, bob])).code, 2);
  await svcOk(a, 'chat', 'request', bob, '--aid', alice, '--note', 'evil \u001b]0;title\u0007');
  const contacts = await eventually('the request', async () => {
    const text = await svcOk(b, 'chat', 'contacts');
    return text.includes(' request ') && text;
  });
  assert.ok(!contacts.includes('\u001b'));
  await svcOk(b, 'chat', 'accept', alice);
  await eventually('friends', async () => (await svcOk(a, '--quiet', 'chat', 'contacts')) === bob);
  await svcOk(a, 'chat', 'send', bob, 'over the line \u001b[2J');
  const text = await eventually('the text', async () => {
    const read = await svcOk(b, 'chat', 'read', alice);
    return read.includes('over the line') && read;
  });
  assert.ok(text.includes('\\u{1b}[2J') && !text.includes('\u001b'));
  assert.equal(await svcOk(b, 'chat', 'mark-read', alice), 'Read up to #1; 0 unread.');
  await svcOk(b, 'chat', 'block', alice, '-y');
  assert.equal((await svc(b, ['chat', 'send', alice, 'x'])).code, 4);
});
