/** Requests for access in a real database on disk, with the clock of the test. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AccessControl } from '../../../src/capabilities/access/access-control.ts';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import { Grants } from '../../../src/capabilities/access/grants.ts';
import {
  ACCESS_REQUEST_LIFE_MS,
  AccessRequests,
  MAX_ASKS_PER_NODE,
} from '../../../src/capabilities/access/requests.ts';
import { askedCall, namesCall } from '../../../src/foundation/access-text.ts';
import { MAX_ACCESS_REQUESTS, MAX_ASKED_BYTES } from '../../../src/foundation/domain/access.ts';
import type { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { AccessRequestStore } from '../../../src/foundation/store/access-requests.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import type { AccessRequest } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const CALL = { kind: 'call', asked: 'GET /', tool: null, note: '' } as const;

class World {
  readonly clock = new TestClock();
  readonly file: string;
  readonly store: Store;
  readonly lists: AccessLists;
  readonly access: AccessControl;
  readonly requests: AccessRequests;
  readonly events: { readonly type: string; readonly cause: unknown }[] = [];
  readonly friends = new Set<Aid>();
  readonly called = testAid(0);

  constructor(dir: string) {
    this.file = join(dir, 'svcd.db');
    this.store = Store.open(this.file, MIGRATIONS);
    this.store.run`
      INSERT OR IGNORE INTO agents
        (aid, key_name, operational_key, delegation, issued_at, expires_at, service_tcp, registered_at, heartbeat_at)
      VALUES (${this.called}, 'k', ${new Uint8Array(32)}, ${new Uint8Array(1)}, 0, 0, '', 0, 0)`;
    const derive = async () => new Uint8Array(32);
    this.lists = new AccessLists(new AccessRepository(this.store), this.clock, derive);
    const rows = new AccessRequestStore(this.store);
    const grants = new Grants(rows, this.lists, this.clock);
    this.access = new AccessControl(this.lists, this.clock, derive, () => false, grants);
    this.requests = new AccessRequests({
      store: rows,
      lists: this.lists,
      access: this.access,
      grants,
      clock: this.clock,
      log: silentLog,
      events: { emit: (_aid, type, _data, cause) => this.events.push({ type, cause: cause ?? null }) },
      isKnown: (_called, caller) => this.friends.has(caller),
    });
  }

  /** A caller from its own node and address, unless named. */
  from(
    n: number,
    source = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`,
    purpose: 'http' | 'tcp' = 'http',
  ): AccessRequest {
    const nodeKey = new Uint8Array(32);
    new DataView(nodeKey.buffer).setUint32(0, n);
    return { caller: testAid(n), called: this.called, purpose, accessToken: undefined, nodeKey, source };
  }
}

async function newWorld(t: TestContext, dir = mkdtempSync(join(tmpdir(), 'svcd-asks-'))): Promise<World> {
  const world = new World(dir);
  world.lists.setDefault(world.called, 'ask');
  await world.requests.start();
  t.after(async () => {
    await world.requests.stop();
    world.lists.stop();
    world.store.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return world;
}

test('ten thousand strangers neither push out a request of a known contact nor fill the disk', async (t) => {
  const world = await newWorld(t);
  world.friends.add(testAid(1));
  const known = world.requests.ask(world.from(1), { ...CALL, note: 'from Ada' });
  assert.equal(known.state, 'pending');
  const note = 'x'.repeat(280);
  const states = new Map<string, number>();
  for (let n = 2; n <= 10_001; n++) {
    // Each from another network, at the speed that the rate for all strangers permits.
    world.clock.advance(101);
    const { state } = world.requests.ask(world.from(n, `${1 + (n % 200)}.${(n >> 8) % 256}.${n % 256}.1`), {
      ...CALL,
      note,
    });
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  const stored = world.requests.list();
  assert.ok(stored.some(({ id }) => id === known.id));
  assert.ok(stored.length <= MAX_ACCESS_REQUESTS / 2 + 1, `${stored.length} stored`);
  assert.ok((states.get('busy') ?? 0) > 8000, JSON.stringify(Object.fromEntries(states)));
  // A contact that asks while strangers fill their part finds room.
  world.friends.add(testAid(20_000));
  assert.equal(world.requests.ask(world.from(20_000), CALL).state, 'pending');
  // Few events report strangers, and none as a contact.
  const strangers = world.events.filter(({ cause }) => cause === 'strangers');
  assert.ok(strangers.length < 60, `${strangers.length} events`);
  world.store.run('PRAGMA wal_checkpoint(TRUNCATE)');
  assert.ok(statSync(world.file).size < 4 * 1024 * 1024, `${statSync(world.file).size} bytes`);
});

test('one address, one node and one caller have small parts', async (t) => {
  const world = await newWorld(t);
  for (let n = 100; n < 300; n++) {
    world.clock.advance(2000);
    world.requests.ask(world.from(n, '203.0.113.7'), CALL);
  }
  assert.equal(world.requests.list().length, 16);
  // The same caller again only counts.
  const [first] = world.requests.list();
  assert.ok(first !== undefined && first.source !== null);
});

/** A caller on one node of this machine, where strangers have no limit by source. */
function onNode(world: World, n: number): AccessRequest {
  return { ...world.from(n, '127.0.0.1'), nodeKey: new Uint8Array(32).fill(9) };
}

test('a known caller finds room on the node of strangers, who lose their idlest request but none that was allowed', async (t) => {
  const world = await newWorld(t);
  const ids = Array.from({ length: MAX_ASKS_PER_NODE }, (_, i) => {
    world.clock.advance(2000);
    return world.requests.ask(onNode(world, 10 + i), CALL).id ?? '';
  });
  assert.equal(world.requests.ask(onNode(world, 1), CALL).state, 'busy');
  await world.requests.allow(ids[0] ?? '', { once: true });
  // This one asks again, so it is not the idlest.
  world.requests.ask(onNode(world, 11), CALL);
  world.friends.add(testAid(1));
  assert.equal(world.requests.ask(onNode(world, 1), CALL).state, 'pending');
  const left = new Set(world.requests.list().map(({ id }) => id));
  assert.deepEqual(
    ids.filter((id) => !left.has(id)),
    [ids[2]],
  );
});

test('a known caller can wait although strangers of its node fill all places', async (t) => {
  const world = await newWorld(t);
  const never = new AbortController().signal;
  const waits = Array.from({ length: 16 }, (_, i) => {
    world.clock.advance(2000);
    world.requests.ask(onNode(world, 10 + i), CALL);
    return world.requests.wait(onNode(world, 10 + i), CALL, 60, never);
  });
  world.friends.add(testAid(1));
  const { id } = world.requests.ask(onNode(world, 1), CALL);
  const known = world.requests.wait(onNode(world, 1), CALL, 60, never);
  assert.equal((await waits[0])?.state, 'pending');
  await world.requests.allow(id ?? '', {});
  assert.equal((await known).state, 'allowed');
  world.lists.setDefault(world.called, 'deny');
  for (const { state } of await Promise.all(waits.slice(1))) assert.equal(state, 'refused');
});

test('a caller that has already disconnected does not wait', async (t) => {
  const world = await newWorld(t);
  const { id } = world.requests.ask(world.from(1), CALL);
  assert.deepEqual(await world.requests.wait(world.from(1), CALL, 60, AbortSignal.abort()), { state: 'pending', id });
});

test('too many requests in a short time are refused without a write', async (t) => {
  const world = await newWorld(t);
  const states = Array.from({ length: 30 }, () => world.requests.ask(world.from(7), CALL).state);
  assert.equal(states.filter((state) => state === 'pending').length, 10);
  assert.equal(world.requests.list()[0]?.count, 10);
});

test('each decision answers the callers that wait', async (t) => {
  const world = await newWorld(t);
  const never = new AbortController().signal;
  for (const [n, decide, state] of [
    [1, (id: string) => world.requests.allow(id, { once: true }), 'allowed'],
    [2, (id: string) => world.requests.allow(id, {}), 'allowed'],
    [3, (id: string) => world.requests.allow(id, { tools: ['a'] }), 'allowed'],
    [4, (id: string) => world.requests.refuse(id), 'refused'],
    [5, () => world.lists.allow(world.called, { aid: testAid(5) }), 'allowed'],
    [6, () => world.lists.setDefault(world.called, 'deny'), 'refused'],
  ] as const) {
    const { id } = world.requests.ask(world.from(n), CALL);
    assert.ok(id !== null);
    const answer = world.requests.wait(world.from(n), CALL, 60, never);
    await decide(id);
    assert.equal((await answer).state, state, `decision ${n}`);
  }
});

test('a wait ends after its time, and when the caller disconnects', async (t) => {
  const world = await newWorld(t);
  const from = world.from(1);
  const { id } = world.requests.ask(from, CALL);
  const late = world.requests.wait(from, CALL, 60, new AbortController().signal);
  const gone = new AbortController();
  const cut = world.requests.wait(from, CALL, 60, gone.signal);
  gone.abort();
  assert.deepEqual(await cut, { state: 'pending', id });
  await world.clock.run(60_000);
  assert.deepEqual(await late, { state: 'pending', id });
});

test('requests and unused exchanges expire', async (t) => {
  const world = await newWorld(t);
  const asked = world.requests.ask(world.from(1), CALL);
  const short = world.requests.ask(world.from(2), CALL);
  await world.requests.allow(short.id ?? '', { once: true, expiresAt: world.clock.now() + 1000 });
  await world.access.authorize(world.from(2));
  world.clock.advance(1000);
  await assert.rejects(world.access.authorize(world.from(2)), { code: 'access_denied' });
  world.clock.advance(ACCESS_REQUEST_LIFE_MS);
  assert.deepEqual(world.requests.list(), []);
  await assert.rejects(world.requests.allow(asked.id ?? '', {}), { code: 'not_found' });
});

test('an exchange that is allowed once begins once, and its links may continue', async (t) => {
  const world = await newWorld(t);
  const from = world.from(1, undefined, 'tcp');
  const { id } = world.requests.ask(from, { ...CALL, kind: 'tunnel' });
  await assert.rejects(world.access.enter(from), { code: 'access_denied' });
  await world.requests.allow(id ?? '', { once: true });
  // A call is another kind.
  await assert.rejects(
    world.access.enter(world.from(1), () => CALL.asked),
    { code: 'access_denied' },
  );
  const [one, two] = await Promise.all([world.access.enter(from), world.access.enter(from)]);
  const end = one.begin?.();
  assert.throws(
    () => two.begin?.(),
    (error: SvcError) => error.code === 'access_denied',
  );
  await assert.rejects(world.access.enter(from), { code: 'access_denied' });
  await world.access.authorize(from);
  // A deny entry also ends exchanges in progress.
  world.lists.deny(world.called, from.caller);
  await assert.rejects(world.access.authorize(from), { code: 'access_denied' });
  const [entry] = world.lists.view(world.called).deny;
  world.lists.remove(world.called, 'deny', entry?.id ?? '');
  await world.access.authorize(from);
  end?.();
  await assert.rejects(world.access.authorize(from), { code: 'access_denied' });
  assert.equal(world.requests.ask(from, { ...CALL, kind: 'tunnel' }).state, 'pending');
});

test('the ID of a request belongs to its text, and a decision about the earlier text fails', async (t) => {
  const world = await newWorld(t);
  const from = world.from(1);
  const ask = (more: Partial<typeof CALL> | object): string | null => {
    world.clock.advance(2000);
    return world.requests.ask(from, { ...CALL, ...more }).id;
  };
  const first = ask({ note: 'It is me, Ada.' });
  // Without a note, the earlier one stays.
  assert.equal(ask({}), first);
  assert.equal(ask({ note: 'It is me, Ada.' }), first);
  const ids = [first];
  for (const more of [{ asked: 'DELETE /' }, { tool: 'delete' }, { note: 'The plumber.' }, { asked: 'GET /x' }]) {
    const id = ask(more);
    assert.ok(id !== null && !ids.includes(id), JSON.stringify(more));
    const old = ids.at(-1) ?? '';
    for (const decide of [() => world.requests.allow(old, {}), () => world.requests.allow(old, { once: true })])
      await assert.rejects(decide(), { code: 'not_found', message: /its caller changed its text/ });
    assert.throws(() => world.requests.refuse(old), { code: 'not_found' });
    ids.push(id);
  }
  assert.deepEqual(
    world.requests.list().map(({ id }) => id),
    [ids.at(-1)],
  );
  assert.deepEqual(world.lists.view(world.called).allow, []);
  assert.deepEqual(world.lists.view(world.called).deny, []);
});

test('a call that is allowed once has the method and path of its request', async (t) => {
  const world = await newWorld(t);
  const from = world.from(1);
  const order = { ...CALL, asked: 'POST /order' };
  await world.requests.allow(world.requests.ask(from, order).id ?? '', { once: true });
  await world.access.authorize(from);
  for (const asked of ['GET /order', 'POST /', 'POST /order/1', 'POST /order ', '', undefined])
    await assert.rejects(
      world.access.enter(from, asked === undefined ? undefined : () => asked),
      { code: 'access_denied' },
      asked,
    );
  // Another call of the same caller waits for its own decision, and does not use the first one.
  const other = world.requests.ask(from, { ...CALL, asked: 'GET /' });
  assert.equal(other.state, 'pending');
  assert.equal(world.requests.ask(from, order).state, 'allowed');
  await world.requests.allow(other.id ?? '', { once: true });
  (await world.access.enter(from, () => 'POST /order')).begin?.()();
  await assert.rejects(
    world.access.enter(from, () => 'POST /order'),
    { code: 'access_denied' },
  );
  (await world.access.enter(from, () => 'GET /')).begin?.()();
  await assert.rejects(world.access.authorize(from), { code: 'access_denied' });
});

test('two paths never have the same description', () => {
  const paths = ['/a', '/a\u0085', '/a\u00A0', '/a\u0080b', '/a\u0081b', '/a b'];
  const asked = paths.map((path) => askedCall('GET', path));
  assert.equal(new Set(asked).size, paths.length);
  assert.ok(asked.every(namesCall));
  assert.equal(askedCall('GET', '/a?b'), 'GET /a');
});

test('a request without a complete path cannot be allowed once, except for tools', async (t) => {
  const world = await newWorld(t);
  const from = world.from(1);
  const long = askedCall('GET', `/${'x'.repeat(MAX_ASKED_BYTES)}?y`);
  assert.ok(Buffer.byteLength(long) <= MAX_ASKED_BYTES);
  for (const asked of [long, 'calls from a local address', 'GET', 'GET /a b']) {
    world.clock.advance(2000);
    const { id } = world.requests.ask(from, { ...CALL, asked });
    await assert.rejects(world.requests.allow(id ?? '', { once: true }), { code: 'invalid_request' }, asked);
  }
  world.clock.advance(2000);
  const { id } = world.requests.ask(from, { ...CALL, asked: long });
  await world.requests.allow(id ?? '', { once: true, tools: ['a'] });
  assert.deepEqual((await world.access.enter(from, () => 'POST /mcp')).tools, ['a']);
});

test('a secret still allows callers', async (t) => {
  const world = await newWorld(t);
  await world.lists.allow(world.called, { secret: 'let-me-in' });
  await world.access.authorize({ ...world.from(1), accessToken: 'let-me-in' });
  await assert.rejects(world.access.authorize(world.from(1)), { code: 'access_denied' });
});

test('a secret allows more than an entry that is limited to tools, and uses up no exchange', async (t) => {
  const world = await newWorld(t);
  await world.lists.allow(world.called, { secret: 'let-me-in' });
  const withSecret = { ...world.from(1), accessToken: 'let-me-in' };
  await world.lists.allow(world.called, { aid: testAid(1), tools: ['a'] });
  assert.equal((await world.access.enter(withSecret)).tools, null);
  assert.deepEqual((await world.access.enter(world.from(1))).tools, ['a']);
  const { id } = world.requests.ask(world.from(2), CALL);
  await world.requests.allow(id ?? '', { once: true });
  (await world.access.enter({ ...world.from(2), accessToken: 'let-me-in' }, () => CALL.asked)).begin?.()();
  (await world.access.enter(world.from(2), () => CALL.asked)).begin?.()();
  await assert.rejects(
    world.access.enter(world.from(2), () => CALL.asked),
    { code: 'access_denied' },
  );
});

test('requests and their places survive a restart, and go with the agent', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'svcd-asks-'));
  const first = new World(dir);
  first.lists.setDefault(first.called, 'ask');
  await first.requests.start();
  const asked = first.requests.ask(first.from(1), { ...CALL, note: 'hello', tool: 'search' });
  const once = first.requests.ask(first.from(2), CALL);
  await first.requests.allow(once.id ?? '', { once: true, tools: ['a', 'b'] });
  await first.requests.stop();
  first.lists.stop();
  first.store.close();

  const world = await newWorld(t, dir);
  assert.deepEqual(
    new Map(world.requests.list().map(({ id, isOnce, tools, note }) => [id, { isOnce, tools, note }])),
    new Map([
      [asked.id, { isOnce: false, tools: null, note: 'hello' }],
      [once.id, { isOnce: true, tools: ['a', 'b'], note: '' }],
    ]),
  );
  assert.deepEqual(world.requests.pending(), new Map([[world.called, 1]]));
  assert.deepEqual((await world.access.enter(world.from(2))).tools, ['a', 'b']);
  world.store.run('DELETE FROM agents WHERE aid = ?', world.called);
  world.requests.forget();
  assert.deepEqual(world.requests.list(), []);
  assert.deepEqual(world.requests.pending(), new Map());
});
