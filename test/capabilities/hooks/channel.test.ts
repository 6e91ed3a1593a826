import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EventLog } from '../../../src/capabilities/events/event-log.ts';
import { EventWaits } from '../../../src/capabilities/events/event-waits.ts';
import {
  CHANNEL_BURST,
  Channel,
  type ChannelAnswer,
  type ChannelItem,
  MAX_CHANNEL_TEXT_BYTES,
  STRANGERS_COUNT_MS,
} from '../../../src/capabilities/hooks/channel.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { EventStore } from '../../../src/foundation/store/events.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { friend, stranger } from '../../support/hook-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const MINUTE_MS = 60_000;

/** A channel with stubs for its items, on a real event log. */
class World {
  readonly clock = new TestClock();
  readonly #database = storeWithAgents(1);
  readonly aid: Aid;
  readonly log = new EventLog(new EventStore(this.#database.store), this.clock, silentLog);
  readonly waits = new EventWaits(this.log, this.clock, silentLog);
  readonly known = new Set<Aid>([friend]);
  /** Text and sender of each unread note. */
  readonly notes = new Map<string, { readonly sender: Aid; readonly text: string }>();
  readonly read: string[] = [];
  readonly chats: string[] = [];
  readCursor = 0;
  readonly hooked = new Set<string>();
  channel: Channel;

  constructor() {
    const [aid] = this.#database.aids;
    assert.ok(aid !== undefined);
    this.aid = aid;
    this.channel = this.open();
  }

  static async start(t: TestContext): Promise<World> {
    const world = new World();
    await world.waits.start();
    t.after(() => world.waits.stop());
    return world;
  }

  /** The channel of another daemon on the same store. */
  open(): Channel {
    this.channel = new Channel({
      items: {
        now: () => this.clock.now(),
        addressOf: () => null,
        note: (_, id) => {
          const note = this.notes.get(id);
          return note === undefined ? null : { sender: note.sender, msgType: 3 };
        },
        chatEntryId: (_aid, _peer, seq) => `entry ${seq}`,
        load: (_aid, _peer, ref) => {
          if (ref.kind === 'note') {
            const note = this.notes.get(ref.messageId);
            return note === undefined ? null : { note: { message_id: ref.messageId, text: note.text } };
          }
          return ref.kind === 'chat' ? { chat: { seq: ref.seq, text: this.chats[ref.seq - 1] } } : { [ref.kind]: {} };
        },
        isRead: (_aid, _peer, ref) => ref.kind === 'chat' && ref.seq <= this.readCursor,
        markRead: (_aid, _peer, ref) => {
          if (ref.kind === 'chat') this.readCursor = ref.seq;
          if (ref.kind !== 'note') return;
          this.notes.delete(ref.messageId);
          this.read.push(ref.messageId);
        },
      },
      events: this.log,
      waits: this.waits,
      isHooked: ({ ref }) => [...this.hooked].some((id) => ref.includes(id)),
      storage: new MetaStore(this.#database.store),
      commit: async (work) => this.#database.store.transaction(work),
      clock: this.clock,
      log: silentLog,
      isKnown: (_, peer) => this.known.has(peer),
    });
    return this.channel;
  }

  receive(sender: Aid, ...ids: readonly string[]): void {
    for (const id of ids) this.notes.set(id, { sender, text: `text of ${id}` });
    this.log.emit(this.aid, 'mailbox.received', { count: ids.length, message_ids: ids });
  }

  chat(text: string): void {
    this.chats.push(text);
    this.log.emit(this.aid, 'chat.received', { peer: friend, seq: this.chats.length });
  }

  session(name: string, started = 1): TestSession {
    return new TestSession(this, name, started);
  }
}

class TestSession {
  readonly #world: World;
  readonly #who: { readonly session: string; readonly started: number };
  readonly controller = new AbortController();
  taken: string | undefined;

  constructor(world: World, session: string, started: number) {
    this.#world = world;
    this.#who = { session, started };
  }

  ask(): Promise<ChannelAnswer> {
    return this.#world.channel.next({ ...this.#who, taken: this.taken }, this.controller.signal);
  }

  /** Takes the next item, which must be there. */
  async take(): Promise<ChannelItem> {
    const { item } = await this.ask();
    assert.ok(item !== null, 'there is an item');
    this.taken = item.position;
    return item;
  }

  async texts(count: number): Promise<string[]> {
    const texts: string[] = [];
    while (texts.length < count) texts.push((await this.take()).text);
    return texts;
  }
}

test('an item is pushed to a waiting session by its event, and counts as read when the session requests the next', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  const waiting = session.ask();
  await new Promise(setImmediate);
  assert.equal(world.waits.active, 1);
  world.receive(friend, 'a1');
  // The time does not advance: only timers without a delay run.
  await world.clock.run(0);
  const { item } = await waiting;
  assert.deepEqual(item, {
    position: '1.0',
    kind: 'note',
    aid: world.aid,
    peer: friend,
    text: 'text of a1',
    isCut: false,
    item: { note: { message_id: 'a1', text: 'text of a1' } },
  });
  assert.deepEqual(world.read, []);
  session.taken = item.position;
  const next = session.ask();
  await world.clock.run(0);
  assert.deepEqual(world.read, ['a1']);
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(await next, { item: null, again_ms: 0 });
});

test('after a restart a session confirms the items that it has, and gets every other item once', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  world.receive(friend, 'a1', 'a2', 'a3');
  world.chat('hello');
  assert.deepEqual(await session.texts(2), ['text of a1', 'text of a2']);
  world.open();
  // a2 was taken, but not confirmed.
  assert.deepEqual(world.read, ['a1']);
  assert.deepEqual(await session.texts(2), ['text of a3', 'hello']);
  world.open();
  world.receive(friend, 'a4');
  const other = world.session('other');
  assert.deepEqual(await other.texts(1), ['hello'], 'another session gets unconfirmed items');
  assert.deepEqual(await other.texts(1), ['text of a4']);
  assert.deepEqual([world.read, world.readCursor], [['a1', 'a2', 'a3'], 1]);
});

test('deleted and read items do not arrive', async (t) => {
  const world = await World.start(t);
  world.receive(friend, 'a1', 'a2');
  world.chat('one');
  world.chat('two');
  world.notes.delete('a1');
  world.readCursor = 1;
  assert.deepEqual(await world.session('s').texts(2), ['text of a2', 'two']);
});

test('items of strangers arrive as a count, rarely', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  world.receive(stranger, 'b1', 'b2');
  world.receive(friend, 'a1');
  world.receive(stranger, 'b3');
  assert.deepEqual(await session.texts(1), ['text of a1']);
  const count = await session.take();
  assert.deepEqual([count.kind, count.text, count.peer], ['strangers', '3', null]);
  assert.deepEqual(world.read, ['a1']);
  world.receive(stranger, 'b4');
  const waiting = session.ask();
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(await waiting, { item: null, again_ms: 0 });
  await world.clock.run(STRANGERS_COUNT_MS);
  assert.equal((await session.take()).text, '1');
  // Once the owner knows the agent, its items arrive.
  world.known.add(stranger);
  world.receive(stranger, 'b5');
  assert.deepEqual(await session.texts(1), ['text of b5']);
});

test('a long text is cut, and its note stays unread', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  world.receive(friend, 'a1');
  world.notes.set('a1', { sender: friend, text: 'é'.repeat(MAX_CHANNEL_TEXT_BYTES) });
  world.receive(friend, 'a2');
  const long = await session.take();
  assert.deepEqual([long.text, long.isCut], ['é'.repeat(MAX_CHANNEL_TEXT_BYTES / 2), true]);
  assert.deepEqual(await session.texts(1), ['text of a2']);
  world.receive(friend, 'a3');
  assert.deepEqual(await session.texts(1), ['text of a3']);
  assert.deepEqual(world.read, ['a2']);
});

test('a note that a hook must handle stays unread', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  world.hooked.add('a1');
  world.receive(friend, 'a1', 'a2', 'a3');
  assert.deepEqual(await session.texts(3), ['text of a1', 'text of a2', 'text of a3']);
  assert.deepEqual(world.read, ['a2']);
});

test('one session at a time gets items: the newest, then an older session', async (t) => {
  const world = await World.start(t);
  const old = world.session('old', 1);
  const first = old.ask();
  await new Promise(setImmediate);
  const young = world.session('young', 2);
  const second = young.ask();
  const { item, ...when } = await first;
  assert.equal(item, null);
  assert.ok('again_ms' in when && when.again_ms > 0);
  world.receive(friend, 'a1');
  await world.clock.run(0);
  assert.equal((await second).item?.text, 'text of a1');
  assert.equal((await old.ask()).item, null, 'the other session has it');
  await world.clock.run(MINUTE_MS);
  assert.deepEqual(await old.texts(1), ['text of a1'], 'the other session did not confirm it');
  const last = old.ask();
  await new Promise(setImmediate);
  old.controller.abort();
  await assert.rejects(last);
  world.receive(friend, 'a2');
  assert.deepEqual(await world.session('next', 0).texts(1), ['text of a2']);
});

test('a session that ends confirms its last item, and the next one gets the others', async (t) => {
  const world = await World.start(t);
  const session = world.session('s', 2);
  world.receive(friend, 'a1', 'a2');
  const { position } = await session.take();
  world.open();
  const request = { session: 's', started: 2, taken: position, isLast: true };
  assert.deepEqual(await world.channel.next(request, session.controller.signal), { item: null, again_ms: 0 });
  assert.deepEqual(world.read, ['a1']);
  assert.deepEqual(await world.session('next', 1).texts(1), ['text of a2']);
});

test('a flood is handed over slowly', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  const ids = Array.from({ length: CHANNEL_BURST + 2 }, (_, i) => `c${i}`);
  world.receive(friend, ...ids);
  assert.equal((await session.texts(CHANNEL_BURST)).length, CHANNEL_BURST);
  const waiting = session.ask();
  await world.clock.run(999);
  assert.equal(world.waits.active, 1);
  await world.clock.run(1);
  assert.equal((await waiting).item?.text, `text of c${CHANNEL_BURST}`);
});

test('a session cannot confirm missing items', async (t) => {
  const world = await World.start(t);
  const session = world.session('s');
  world.receive(friend, 'a1');
  for (const taken of ['99.0', '1.7', 'x', '']) {
    session.taken = taken;
    assert.equal((await session.ask()).item?.text, 'text of a1', taken);
  }
});
