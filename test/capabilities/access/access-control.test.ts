import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { AccessControl } from '../../../src/capabilities/access/access-control.ts';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import type { DeriveSecret } from '../../../src/capabilities/access/derivations.ts';
import { Grants } from '../../../src/capabilities/access/grants.ts';
import { type ErrorCode, SvcError } from '../../../src/foundation/errors.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { AccessRequestStore } from '../../../src/foundation/store/access-requests.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import type { AccessRequest } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENT = testAid(1);
const CALLER = testAid(2);
const NEIGHBOUR = testAid(3);
const SECRET = 'open sesame';

/** Access control over an empty database, with a fast hash instead of scrypt. */
function world() {
  const clock = new TestClock();
  const repository = new AccessRepository(Store.open(':memory:', MIGRATIONS));
  let derived = 0;
  const derive = (secret: string, salt: Uint8Array) => {
    derived++;
    return Promise.resolve(new Uint8Array(createHash('sha256').update(salt).update(secret).digest()));
  };
  const lists = new AccessLists(repository, clock, derive);
  const state = { isClosed: false };
  const control = new AccessControl(lists, clock, derive, () => state.isClosed);
  const request = (more: Partial<AccessRequest> = {}): AccessRequest => ({
    caller: CALLER,
    called: AGENT,
    purpose: 'http',
    accessToken: undefined,
    nodeKey: new Uint8Array(32).fill(9),
    source: '192.0.2.1',
    ...more,
  });
  /** `ok`, or the error code. */
  const ask = async (more: Partial<AccessRequest> = {}): Promise<'ok' | ErrorCode> => {
    try {
      await control.authorize(request(more));
      return 'ok';
    } catch (error) {
      assert.ok(error instanceof SvcError);
      return error.code;
    }
  };
  return { clock, lists, repository, derive, ask, state, derivations: () => derived };
}

test('an agent without settings is public', async () => {
  const { ask } = world();
  assert.equal(await ask(), 'ok');
  assert.equal(await ask({ accessToken: 'anything' }), 'ok');
});

test('a temporary default is replaced by the permanent one, also after a restart', async () => {
  const { clock, lists, repository, derive, ask } = world();
  lists.setDefault(AGENT, 'ask');
  lists.setDefault(AGENT, 'deny', true);
  lists.setDefault(AGENT, 'deny', true);
  assert.equal(await ask(), 'access_denied');
  const again = new AccessLists(repository, clock, derive);
  assert.deepEqual(again.view(AGENT), { default: 'deny', default_before: 'ask', allow: [], deny: [] });
  again.servicesChanged(AGENT);
  assert.deepEqual(again.view(AGENT), { default: 'ask', allow: [], deny: [] });
  // Nothing is temporary now.
  again.servicesChanged(AGENT);
  assert.equal(again.view(AGENT).default, 'ask');
});

test('a default that the owner sets during a temporary one is permanent', () => {
  const { lists } = world();
  lists.setDefault(AGENT, 'public');
  lists.setDefault(AGENT, 'deny', true);
  lists.setDefault(AGENT, 'deny');
  lists.servicesChanged(AGENT);
  assert.deepEqual(lists.view(AGENT), { default: 'deny', allow: [], deny: [] });
  // A temporary default that equals the permanent one changes nothing.
  lists.setDefault(AGENT, 'deny', true);
  assert.equal(lists.view(AGENT).default_before, undefined);
});

/** An agent whose temporary services the test chooses. */
function served() {
  const clock = new TestClock();
  const store = Store.open(':memory:', MIGRATIONS);
  const repository = new AccessRepository(store);
  const services: { bound: string; before: string[] | null } = { bound: '', before: null };
  const derive = () => Promise.resolve(new Uint8Array(32));
  const lists = new AccessLists(repository, clock, derive, () => services);
  const grants = new Grants(new AccessRequestStore(store), lists, clock);
  const control = new AccessControl(lists, clock, derive, () => false, grants);
  lists.setDefault(AGENT, 'deny');
  const bind = (bound: string, before: string[] | null): void => {
    Object.assign(services, { bound, before });
    lists.servicesChanged(AGENT);
  };
  const enter = async (purpose: AccessRequest['purpose'] = 'http', caller = CALLER) => {
    const from = { called: AGENT, caller, accessToken: undefined, nodeKey: new Uint8Array(32), source: '192.0.2.1' };
    return control.enter({ ...from, purpose }).then(
      ({ tools, isServer }) => ({ tools, isServer }),
      (error: SvcError) => error.code,
    );
  };
  return { lists, bind, enter, control };
}

test('a caller of a temporary service may call it and nothing else, and only while it is bound', async () => {
  const { lists, bind, enter, control } = served();
  const [share, other, permanent] = ['http+proven://127.0.0.1:1', 'http+proven://127.0.0.1:2', 'http://127.0.0.1:3'];
  const allow = { aid: CALLER, tools: ['read'], service: share };
  await assert.rejects(lists.allow(AGENT, allow), { code: 'wrong_state' });
  bind(share, [permanent]);
  await assert.rejects(lists.allow(AGENT, { ...allow, service: other }), { code: 'wrong_state' });
  await assert.rejects(lists.allow(AGENT, { ...allow, expiresAt: Number.MAX_SAFE_INTEGER }), {
    code: 'invalid_request',
  });
  const entry = await lists.allow(AGENT, allow);
  assert.deepEqual([entry.tools, entry.service_tcp], [['read'], share]);
  await lists.allow(AGENT, { aid: NEIGHBOUR, service: share });
  assert.equal(control.isNamed(AGENT, CALLER), true);
  assert.deepEqual(await enter(), { tools: ['read'], isServer: true });
  assert.deepEqual(await enter('http', NEIGHBOUR), { tools: null, isServer: true });
  assert.equal(await enter('tcp-probe'), 'calls_only');
  for (const purpose of ['tcp', 'object', 'push-box', 'admin'] as const)
    for (const caller of [CALLER, NEIGHBOUR]) assert.equal(await enter(purpose, caller), 'access_denied', purpose);
  // A second temporary service has other callers. The first one returns with its own.
  bind(other, [share, permanent]);
  assert.equal(await enter(), 'access_denied');
  bind(share, [permanent]);
  assert.deepEqual(await enter(), { tools: ['read'], isServer: true });
  lists.deny(AGENT, CALLER);
  assert.equal(await enter(), 'access_denied');
  bind(permanent, null);
  assert.equal(await enter('http', NEIGHBOUR), 'access_denied');
  assert.deepEqual(lists.view(AGENT).allow, []);
  bind(share, [permanent]);
  assert.equal(await enter('http', NEIGHBOUR), 'access_denied');
});

test('a service that stopped allows its callers nothing, and a removed entry ends immediately', async () => {
  const { lists, bind, enter } = served();
  const share = 'http+proven://127.0.0.1:1';
  bind(share, ['']);
  const { id } = await lists.allow(AGENT, { aid: CALLER, service: share });
  lists.remove(AGENT, 'allow', id);
  assert.equal(await enter(), 'access_denied');
  await lists.allow(AGENT, { aid: CALLER, service: share });
  lists.serviceStopped(AGENT, 'http+proven://127.0.0.1:2');
  assert.deepEqual(await enter(), { tools: null, isServer: true });
  lists.serviceStopped(AGENT, share);
  assert.equal(await enter(), 'access_denied');
  // A permanent entry is not limited by an entry of a service, and stays.
  await lists.allow(AGENT, { aid: CALLER });
  await lists.allow(AGENT, { aid: CALLER, tools: ['read'], service: share });
  assert.deepEqual(await enter(), { tools: null, isServer: false });
  bind('', null);
  assert.deepEqual(await enter(), { tools: null, isServer: false });
});

test('while access is closed, only local agents may call, regardless of the lists', async () => {
  const { ask, lists, state } = world();
  await lists.allow(AGENT, { aid: CALLER });
  await lists.allow('node', { aid: CALLER });
  await lists.allow(AGENT, { secret: SECRET });
  state.isClosed = true;
  for (const purpose of ['http', 'tcp', 'object', 'push-box', 'admin'] as const) {
    assert.equal(await ask({ purpose }), 'access_denied', purpose);
    assert.equal(await ask({ purpose, accessToken: SECRET }), 'access_denied', purpose);
    assert.equal(await ask({ purpose, nodeKey: null }), 'ok', purpose);
  }
  assert.equal(await ask({ purpose: 'note' }), 'ok', 'messages have separate rules');
  state.isClosed = false;
  assert.equal(await ask(), 'ok');
});

test('deny takes precedence over allow, allow over the default, and changes apply immediately', async () => {
  const { ask, lists } = world();
  lists.setDefault(AGENT, 'deny');
  assert.equal(await ask(), 'access_denied');
  const allowed = await lists.allow(AGENT, { aid: CALLER });
  assert.equal(await ask(), 'ok');
  const denied = lists.deny(AGENT, CALLER);
  assert.equal(await ask(), 'access_denied');
  lists.setDefault(AGENT, 'public');
  assert.equal(await ask(), 'access_denied');
  lists.remove(AGENT, 'deny', denied.id);
  lists.setDefault(AGENT, 'deny');
  assert.equal(await ask(), 'ok');
  lists.remove(AGENT, 'allow', allowed.id);
  assert.equal(await ask(), 'access_denied');
});

test('calls, tunnels and objects are controlled; notes, chat and groups are not', async () => {
  const { ask, lists } = world();
  lists.deny(AGENT, CALLER);
  for (const purpose of ['http', 'tcp', 'object'] as const) assert.equal(await ask({ purpose }), 'access_denied');
  for (const purpose of ['note', 'chat', 'group'] as const) assert.equal(await ask({ purpose }), 'ok');
});

test('remote administration has separate lists and never allows by default', async () => {
  const { ask, lists } = world();
  assert.equal(await ask({ purpose: 'admin' }), 'access_denied');
  assert.throws(() => lists.setDefault('node', 'public'), { code: 'invalid_request' });
  await lists.allow(AGENT, { aid: CALLER });
  assert.equal(await ask({ purpose: 'admin' }), 'access_denied');
  await lists.allow('node', { aid: CALLER });
  assert.equal(await ask({ purpose: 'admin' }), 'ok');
});

test('a secret allows its caller until it is removed', async () => {
  const { ask, lists } = world();
  lists.setDefault(AGENT, 'deny');
  const entry = await lists.allow(AGENT, { secret: SECRET });
  assert.equal(await ask(), 'access_denied');
  assert.equal(await ask({ accessToken: 'open  sesame' }), 'access_denied');
  assert.equal(await ask({ accessToken: SECRET }), 'ok');
  lists.deny(AGENT, NEIGHBOUR);
  assert.equal(await ask({ accessToken: SECRET, caller: NEIGHBOUR }), 'access_denied');
  lists.remove(AGENT, 'allow', entry.id);
  assert.equal(await ask({ accessToken: SECRET }), 'access_denied');
});

test('a cached secret is derived once, even for concurrent calls', async () => {
  const { ask, lists, derivations } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  const before = derivations();
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask({ accessToken: SECRET })));
  assert.deepEqual(new Set(answers), new Set(['ok']));
  assert.equal(derivations() - before, 1);
});

test('entries by AID and by secret expire, and listeners are notified then', async () => {
  const { ask, lists, clock } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { aid: CALLER, expiresAt: clock.now() + 10_000 });
  await lists.allow(AGENT, { secret: SECRET, expiresAt: clock.now() + 3 * 86_400_000 });
  const reported: number[] = [];
  const start = clock.now();
  lists.onChange(() => reported.push(clock.now() - start));
  assert.equal(await ask(), 'ok');
  clock.advance(10_000);
  assert.equal(await ask(), 'access_denied');
  assert.equal(await ask({ accessToken: SECRET }), 'ok');
  clock.advance(3 * 86_400_000 - 10_000);
  assert.equal(await ask({ accessToken: SECRET }), 'access_denied');
  assert.ok(reported.includes(10_000) && reported.includes(3 * 86_400_000), reported.join());
  lists.stop();
  assert.equal(clock.timers, 0);
});

test('a guesser is locked out even with the valid secret; other callers of its node are not', async () => {
  const { ask, lists, clock } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  for (let i = 0; i < 5; i++) assert.equal(await ask({ accessToken: `guess ${i}` }), 'access_denied');
  assert.equal(await ask({ accessToken: 'guess 5' }), 'rate_limited');
  assert.equal(await ask({ accessToken: SECRET }), 'rate_limited');
  assert.equal(await ask({ accessToken: SECRET, caller: NEIGHBOUR }), 'ok');
  assert.equal(await ask({ accessToken: SECRET }), 'rate_limited', 'not even from the cache');
  await lists.allow(AGENT, { aid: CALLER });
  assert.equal(await ask({ accessToken: SECRET }), 'ok', 'allowed by AID despite wrong guesses');
  clock.advance(30_000);
  assert.equal(await ask({ accessToken: SECRET }), 'ok');
});

test('a lock reports how long to wait', async () => {
  const { lists, clock, repository, derive } = world();
  const control = new AccessControl(lists, clock, derive);
  repository.create(AGENT, 'deny', new Uint8Array(16));
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  const guess = (n: number) =>
    control.authorize({
      caller: CALLER,
      called: AGENT,
      purpose: 'http',
      accessToken: `guess ${n}`,
      nodeKey: null,
      source: null,
    });
  for (let i = 0; i < 5; i++) await assert.rejects(guess(i), { code: 'access_denied' });
  clock.advance(500);
  await assert.rejects(guess(5), { code: 'rate_limited', details: { retry_after_s: 30 } });
});

test('a client that repeats one outdated secret does not lock itself out', async () => {
  const { ask, lists, derivations } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  const before = derivations();
  for (let i = 0; i < 50; i++) assert.equal(await ask({ accessToken: 'last year' }), 'access_denied');
  assert.equal(derivations() - before, 1);
  assert.equal(await ask({ accessToken: SECRET }), 'ok');
});

test('a secret that was wrong is valid immediately after it is added', async () => {
  const { ask, lists } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  assert.equal(await ask({ accessToken: 'another one' }), 'access_denied');
  await lists.allow(AGENT, { secret: 'another one' });
  assert.equal(await ask({ accessToken: 'another one' }), 'ok');
});

test('an oversized secret is not derived', async () => {
  const { ask, lists, derivations } = world();
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  const before = derivations();
  assert.equal(await ask({ accessToken: 'x'.repeat(257) }), 'access_denied');
  assert.equal(derivations(), before);
});

test('a generated secret is returned once and stored only as a hash', async () => {
  const { ask, lists, repository, clock } = world();
  lists.setDefault(AGENT, 'deny');
  const { secret, ...entry } = await lists.allow(AGENT, { generateSecret: true, label: 'laptop' });
  assert.match(secret ?? '', /^svcs_[\w-]{43}$/);
  assert.deepEqual(entry, {
    id: entry.id,
    secret_set: true,
    label: 'laptop',
    created_at: new Date(clock.now()).toISOString(),
  });
  assert.deepEqual(lists.view(AGENT), { default: 'deny', allow: [entry], deny: [] });
  assert.deepEqual(lists.views([AGENT]).get(AGENT), lists.view(AGENT));
  const given = await lists.allow(AGENT, { secret: SECRET });
  assert.ok(!('secret' in given));
  const stored = JSON.stringify(repository.load(AGENT), (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
  );
  assert.ok(!stored.includes(SECRET) && !stored.includes(secret ?? '-'));
  assert.equal(await ask({ accessToken: secret }), 'ok');
});

test('rejects invalid input', async () => {
  const { lists, clock } = world();
  const cases = [
    {},
    { aid: CALLER, secret: SECRET },
    { secret: SECRET, generateSecret: true },
    { secret: 'short' },
    { secret: 'x'.repeat(257) },
    { aid: CALLER, label: 'x'.repeat(65) },
    { aid: CALLER, expiresAt: clock.now() },
  ];
  for (const input of cases) await assert.rejects(lists.allow(AGENT, input), { code: 'invalid_request' });
  await assert.rejects(lists.allow(AGENT, { aid: 'aid1nonsense' }), { code: 'bad_aid' });
  assert.throws(() => lists.deny(AGENT, 'aid1nonsense'), { code: 'bad_aid' });
  assert.throws(() => lists.remove(AGENT, 'allow', 'none'), { code: 'not_found' });
  assert.throws(() => lists.remove(AGENT, 'deny', 'none'), { code: 'not_found' });
});

test('an AID in another spelling is the same entry', async () => {
  const { lists, ask } = world();
  const first = lists.deny(AGENT, ` ${CALLER.toUpperCase()} `);
  assert.equal(first.aid, CALLER);
  assert.equal(lists.deny(AGENT, CALLER).id, first.id);
  assert.equal(await ask(), 'access_denied');
});

test('a list holds a thousand entries with at most a hundred secrets, and a full list accepts renewals', async () => {
  const { lists } = world();
  for (let i = 0; i < 100; i++) await lists.allow(AGENT, { secret: `secret ${i}` });
  await assert.rejects(lists.allow(AGENT, { secret: 'one more' }), { code: 'quota_exceeded' });
  for (let i = 0; i < 1000; i++) lists.deny(AGENT, testAid(1000 + i));
  assert.throws(() => lists.deny(AGENT, testAid(1)), { code: 'quota_exceeded' });
  assert.equal(lists.deny(AGENT, testAid(1000)).aid, testAid(1000));
});

test('a removed subject leaves nothing behind', async () => {
  const { lists, ask } = world();
  lists.deny(AGENT, CALLER);
  const reported: string[] = [];
  const stop = lists.onChange((subject) => reported.push(subject));
  lists.removeSubject(AGENT);
  stop();
  lists.setDefault(AGENT, 'public');
  assert.deepEqual(reported, [AGENT]);
  assert.deepEqual(lists.view(AGENT), { default: 'public', allow: [], deny: [] });
  assert.deepEqual(lists.views([AGENT]), new Map([[AGENT, lists.view(AGENT)]]));
  assert.equal(await ask(), 'ok');
});

test('a secret that is hashed while its agent is deleted is not added to the next registration', async () => {
  const { lists, repository } = world();
  const gone = lists.allow(AGENT, { secret: SECRET });
  lists.removeSubject(AGENT);
  await assert.rejects(gone, { code: 'not_found' });
  assert.equal(repository.load(AGENT), null);
  const old = lists.allow(AGENT, { secret: SECRET });
  lists.removeSubject(AGENT);
  lists.setDefault(AGENT, 'deny');
  await assert.rejects(old, { code: 'not_found' });
  assert.deepEqual(repository.load(AGENT)?.allow, []);
});

test('an agent that is deleted and registered again accepts the same secret', async () => {
  const { lists, ask } = world();
  for (let i = 0; i < 2; i++) {
    lists.setDefault(AGENT, 'deny');
    await lists.allow(AGENT, { secret: SECRET });
    assert.equal(await ask({ accessToken: SECRET }), 'ok');
    lists.removeSubject(AGENT);
  }
});

test('a denial during the derivation of a secret takes effect', async () => {
  const { lists, clock, derive } = world();
  let finish = (): void => {};
  const slow: DeriveSecret = async (secret, salt) => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return derive(secret, salt);
  };
  const control = new AccessControl(lists, clock, slow);
  lists.setDefault(AGENT, 'deny');
  await lists.allow(AGENT, { secret: SECRET });
  const asked = control.authorize({
    caller: CALLER,
    called: AGENT,
    purpose: 'http',
    accessToken: SECRET,
    nodeKey: null,
    source: null,
  });
  await new Promise((resolve) => setImmediate(resolve));
  lists.deny(AGENT, CALLER);
  finish();
  await assert.rejects(asked, { code: 'access_denied' });
});

test('cached views of many subjects show each change immediately', async () => {
  const { lists } = world();
  const agrees = (): void => {
    const views = lists.views([AGENT, NEIGHBOUR]);
    assert.deepEqual(
      [AGENT, NEIGHBOUR].map((one) => views.get(one)),
      [lists.view(AGENT), lists.view(NEIGHBOUR)],
    );
  };
  agrees();
  const first = lists.views([AGENT, NEIGHBOUR]);
  assert.equal(lists.views([AGENT]).get(AGENT), first.get(AGENT));
  lists.setDefault(AGENT, 'deny');
  agrees();
  const { id } = await lists.allow(AGENT, { aid: CALLER });
  agrees();
  await lists.allow(AGENT, { secret: SECRET });
  agrees();
  lists.deny(AGENT, NEIGHBOUR);
  agrees();
  lists.remove(AGENT, 'allow', id);
  agrees();
  lists.removeSubject(AGENT);
  agrees();
  assert.equal(lists.views([NEIGHBOUR]).get(NEIGHBOUR), first.get(NEIGHBOUR));
});
