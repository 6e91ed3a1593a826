import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import { Callers } from '../../../src/capabilities/access/callers.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { accessOperations } from '../../../src/operations/access.ts';
import { accessHandlers } from '../../../src/operations/handlers/access.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { bind, type CallContext } from '../../../src/operations/operation.ts';
import { testAid } from '../../support/agents.ts';
import { cheapDerivation } from '../../support/cheap-scrypt.ts';
import { TestClock } from '../../support/test-clock.ts';

const AGENT = testAid(1);
const FRIEND = testAid(2);
const CONTEXT: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};

/** Runs operations as a surface does: request parts in, JSON out. */
function surface() {
  const clock = new TestClock();
  const repository = new AccessRepository(Store.open(':memory:', MIGRATIONS));
  const callers = new Callers(clock, () => false);
  const handlers = bind(
    accessOperations,
    accessHandlers({
      access: new AccessLists(repository, clock, cheapDerivation),
      callers,
      decide: (_called, caller) => (caller === FRIEND ? 'allow' : 'deny'),
      publicClients: () => [{ label: 'laptop', address: '192.0.2.7', requests: 2, refused: 1, lastAt: clock.now() }],
      labels: () => ({ [FRIEND]: 'bob' }),
      requireAgent: (aid) => {
        if (aid !== AGENT) throw new SvcError('not_found');
        return aid;
      },
    }),
  );
  const run = async (name: string, params: object, body?: unknown, query: object = {}): Promise<unknown> => {
    const operation = handlers.find(({ declaration }) => declaration.name === name);
    assert.ok(operation, name);
    const input = compileInput(operation.declaration)({ params: { ...params }, query: { ...query }, body });
    return JSON.parse(JSON.stringify(await operation.run(input, CONTEXT)));
  };
  return { run, clock, callers, now: new Date(clock.now()).toISOString() };
}

function idOf(entry: unknown): string {
  assert.ok(typeof entry === 'object' && entry !== null && 'id' in entry && typeof entry.id === 'string');
  return entry.id;
}

test('an access list is read in pages, allow entries first', async () => {
  const { run, clock } = surface();
  const params = { aid: AGENT };
  const ids: string[] = [];
  for (const name of ['aclAllow', 'aclAllow', 'aclDeny', 'aclDeny']) {
    const body = name === 'aclAllow' ? { generate_secret: true } : { aid: testAid(10 + ids.length) };
    ids.push(idOf(await run(name, params, body)));
    clock.advance(1);
  }
  type Lists = { allow: { id: string }[]; deny: { id: string }[]; next_cursor?: string };
  const found: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
    const page = (await run('aclGet', params, undefined, {
      limit: 3,
      ...(cursor === undefined ? {} : { cursor }),
    })) as Lists;
    found.push(...[...page.allow, ...page.deny].map(({ id }) => id));
    cursor = page.next_cursor;
  }
  assert.deepEqual([found, pages], [ids, 2]);
});

test('an access list is read and changed', async () => {
  const { run, now } = surface();
  const params = { aid: AGENT };
  assert.deepEqual(await run('aclGet', params), { default: 'public', allow: [], deny: [] });
  assert.deepEqual(await run('aclPatch', params, { default: 'deny' }), { ok: true });
  const allowed = await run('aclAllow', params, {
    aid: FRIEND.toUpperCase(),
    label: 'friend',
    expires_at: '2030-01-01T00:00:00Z',
  });
  const allow = {
    id: idOf(allowed),
    aid: FRIEND,
    label: 'friend',
    created_at: now,
    expires_at: '2030-01-01T00:00:00.000Z',
  };
  assert.deepEqual(allowed, allow);
  const denied = await run('aclDeny', params, { aid: FRIEND });
  const deny = { id: idOf(denied), aid: FRIEND, created_at: now };
  assert.deepEqual(denied, deny);
  assert.deepEqual(await run('aclGet', params), { default: 'deny', allow: [allow], deny: [deny] });
  assert.deepEqual(await run('aclAllowDelete', { ...params, id: allow.id }), { ok: true });
  assert.deepEqual(await run('aclDenyDelete', { ...params, id: deny.id }), { ok: true });
  assert.deepEqual(await run('aclGet', params), { default: 'deny', allow: [], deny: [] });
});

test('a secret is shown only when it is generated', async () => {
  const { run, now } = surface();
  const given = await run('aclAllow', { aid: AGENT }, { secret: 'open sesame' });
  assert.deepEqual(given, { id: idOf(given), secret_set: true, created_at: now });
  const generated = await run('aclAllow', { aid: AGENT }, { generate_secret: true });
  assert.ok(typeof generated === 'object' && generated !== null && 'secret' in generated);
  const shown = JSON.stringify(await run('aclGet', { aid: AGENT }));
  assert.ok(!shown.includes('sesame') && !shown.includes(String(generated.secret)));
});

test('an unknown agent, an unknown entry and invalid input are refused', async () => {
  const { run } = surface();
  const bodies: [string, object?][] = [
    ['aclGet'],
    ['aclPatch', { default: 'deny' }],
    ['aclAllow', { aid: FRIEND }],
    ['aclDeny', { aid: FRIEND }],
  ];
  for (const [name, body] of bodies)
    await assert.rejects(run(name, { aid: FRIEND }, body), { code: 'not_found' }, name);
  await assert.rejects(run('aclAllowDelete', { aid: AGENT, id: 'x' }), { code: 'not_found' });
  await assert.rejects(run('aclDenyDelete', { aid: AGENT, id: 'x' }), { code: 'not_found' });
  for (const body of [
    {},
    { aid: FRIEND, secret: 'open sesame' },
    { secret: 'short' },
    { generate_secret: false },
    { aid: FRIEND, expires_at: 'tomorrow' },
    { aid: FRIEND, expires_at: '2020-01-01T00:00:00Z' },
    { aid: FRIEND, extra: 1 },
  ])
    await assert.rejects(run('aclAllow', { aid: AGENT }, body), { code: 'invalid_request' }, JSON.stringify(body));
  await assert.rejects(run('aclPatch', { aid: AGENT }, { default: 'maybe' }), { code: 'invalid_request' });
  await assert.rejects(run('aclDeny', { aid: AGENT }, { aid: 'aid1x' }), { code: 'bad_aid' });
});

test('callers are listed with accepted calls, the reason of the last refusal, and their current access', async () => {
  const { run, clock, callers, now } = surface();
  const client = { label: 'laptop', address: '192.0.2.7', requests: 2, refused: 1, last_at: now };
  assert.deepEqual(await run('agentCallers', { aid: AGENT }), { since: now, callers: [], public_clients: [client] });
  const asked = { called: AGENT, accessToken: undefined, nodeKey: null, source: null } as const;
  callers.entered({ ...asked, caller: FRIEND, purpose: 'http' });
  clock.advance(1000);
  callers.refused({ ...asked, caller: testAid(3), purpose: 'tcp' }, 'access_denied');
  const later = new Date(clock.now()).toISOString();
  const none = { label: null, calls: 0, tunnels: 0, objects: 0, refused: 0, last_refusal: null };
  assert.deepEqual(await run('agentCallers', { aid: AGENT }), {
    since: now,
    callers: [
      {
        ...none,
        aid: testAid(3),
        refused: 1,
        first_at: later,
        last_at: later,
        last_refusal: { at: later, kind: 'tunnel', code: 'access_denied' },
        access: 'deny',
      },
      { ...none, aid: FRIEND, label: 'bob', calls: 1, first_at: now, last_at: now, access: 'allow' },
    ],
    public_clients: [{ ...client, last_at: later }],
  });
  await assert.rejects(run('agentCallers', { aid: FRIEND }), { code: 'not_found' });
});
