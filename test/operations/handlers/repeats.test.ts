import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REPEAT_MS } from '../../../src/foundation/domain/time.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import type { Store } from '../../../src/foundation/store/store.ts';
import { UnansweredRequestStore } from '../../../src/foundation/store/unanswered-requests.ts';
import { chatOperations } from '../../../src/operations/chat.ts';
import { groupOperations } from '../../../src/operations/groups.ts';
import { chatHandlers } from '../../../src/operations/handlers/chat.ts';
import { groupHandlers } from '../../../src/operations/handlers/groups.ts';
import { Repeats } from '../../../src/operations/handlers/repeats.ts';
import { ChatWorld } from '../../support/chat-world.ts';
import { GroupWorld } from '../../support/group-world.ts';
import { READ_ONCE } from '../../support/read-once.ts';
import { localContext, operationRunner } from '../../support/run-operation.ts';
import { TestClock } from '../../support/test-clock.ts';

/** A client that receives its response, or that has closed its connection before. */
const HEARD = { onAnswered: (settled: (arrived: boolean) => void) => settled(true) };
const GONE = { onAnswered: (settled: (arrived: boolean) => void) => settled(false) };

/** The chat operations of a friend, as after each restart of its daemon. */
async function chatting() {
  const world = new ChatWorld();
  const [a, alice, b, bob] = await world.friends();
  const clock = new TestClock(world.clock.now());
  const restarted = () => {
    const repeats = new Repeats(new UnansweredRequestStore(a.store), clock, silentLog);
    const run = operationRunner(chatOperations, chatHandlers({ chat: a.chat, waits: READ_ONCE, repeats }));
    return (text: string, context: object) =>
      world.during(run('chatSend', { params: { aid: alice }, body: { peer: bob, text } }, context)) as Promise<{
        readonly seq: number;
      }>;
  };
  const texts = () => a.chat.read(alice, bob, 0, 50).entries.map(({ text }) => text);
  return { world, a, alice, b, bob, clock, restarted, texts };
}

test('a chat text is sent once if its client received no response and repeats it, also after a restart', async () => {
  const { restarted, texts } = await chatting();
  const first = await restarted()('dinner?', GONE);
  const send = restarted();
  assert.equal((await send('dinner?', GONE)).seq, first.seq);
  assert.equal((await send('dinner?', HEARD)).seq, first.seq);
  assert.deepEqual(texts(), ['dinner?']);
  const next = await send('dinner?', HEARD);
  assert.equal(next.seq, first.seq + 1, 'the same text after a response is another one');
  assert.deepEqual(texts(), ['dinner?', 'dinner?']);
  await send('lunch?', GONE);
  assert.deepEqual(texts(), ['dinner?', 'dinner?', 'lunch?']);
});

test('a response waits until the ends of connections are read that closed while the daemon was busy', async () => {
  const { a, alice, clock } = await chatting();
  const repeats = new Repeats(new UnansweredRequestStore(a.store), clock, silentLog);
  const order: string[] = [];
  const onAnswered = (settled: (arrived: boolean) => void): void => {
    settled(true);
    setImmediate(() => setImmediate(() => order.push('the ends are read')));
  };
  await repeats.run({ aid: alice, content: {}, act: () => null, again: () => null }, localContext({ onAnswered }));
  order.push('answered');
  assert.deepEqual(order, ['the ends are read', 'answered']);
});

test('a repeated text joins the request that is under way', async () => {
  const { restarted, texts } = await chatting();
  const send = restarted();
  const [one, other] = await Promise.all([send('dinner?', GONE), send('dinner?', HEARD)]);
  assert.equal(one.seq, other.seq);
  assert.deepEqual(texts(), ['dinner?']);
});

test('after an hour, or after the friendship ended, the same text is another request', async () => {
  const { restarted, texts, clock, a, alice, b, bob, world } = await chatting();
  const send = restarted();
  await send('dinner?', GONE);
  clock.advance(REPEAT_MS + 1);
  await send('dinner?', GONE);
  assert.equal(texts().length, 2);
  world.links.part(a.links, b.links);
  await send('offline', GONE);
  a.chat.remove(alice, bob);
  await assert.rejects(send('offline', HEARD), { code: 'not_friends' });
});

test('entries of groups and new groups are created once if the client received no response and repeats the request', async () => {
  const world = new GroupWorld();
  const ann = await world.node();
  const repeats = new Repeats(new UnansweredRequestStore(ann.store), world.clock, silentLog);
  const run = operationRunner(groupOperations, groupHandlers({ groups: ann.groups, waits: READ_ONCE, repeats }));
  const call = (name: 'groupCreate' | 'groupAppend', body: object, params: object, context: object) =>
    world.during(run(name, { params: { aid: ann.aid, ...params }, body }, context)) as Promise<
      Readonly<Record<string, string>>
    >;
  const group = await call('groupCreate', { title: 'Plans' }, {}, GONE);
  assert.deepEqual(await call('groupCreate', { title: 'Plans' }, {}, HEARD), group);
  assert.equal(ann.groups.list(ann.aid).length, 1);
  assert.notEqual((await call('groupCreate', { title: 'Plans' }, {}, HEARD))['group_id'], group['group_id']);

  const at = { group_id: group['group_id'] ?? '' };
  const texts = () => ann.texts(at.group_id);
  const append = (body: object, context: object) => call('groupAppend', body, at, context);
  const entry = await append({ text: 'hello' }, GONE);
  assert.deepEqual(await append({ text: 'hello' }, HEARD), entry);
  assert.deepEqual(texts(), ['hello']);
  await append({ text: 'hello' }, HEARD);
  assert.deepEqual(texts(), ['hello', 'hello']);
  await append({ text: 'hello', reply_to: entry['entry_id'] }, GONE);
  assert.equal(texts().length, 3, 'another content');
  // A title may be set again on purpose, after another one.
  for (const text of ['A', 'B', 'A']) await append({ kind: 'title', text }, GONE);
  assert.equal(ann.groups.head(ann.aid, at.group_id).title, 'A');
});

test('requests without a response are forgotten after an hour, and with their agent', async () => {
  const world = new ChatWorld();
  const [a, alice] = await world.two();
  const clock = new TestClock();
  const store = new UnansweredRequestStore(a.store);
  const count = (of: Store) => Number(of.one`SELECT count(*) AS n FROM unanswered_requests`?.['n']);
  const put = (aid: Aid, print: number) =>
    store.put(aid, Uint8Array.of(print), 'x', clock.now(), clock.now() - REPEAT_MS);
  put(alice, 1);
  clock.advance(REPEAT_MS + 1);
  put(alice, 2);
  assert.equal(count(a.store), 1);
  a.store.run`DELETE FROM agents WHERE aid = ${alice}`;
  assert.equal(count(a.store), 0);
});
