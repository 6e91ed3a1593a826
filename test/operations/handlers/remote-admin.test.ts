import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessLists } from '../../../src/capabilities/access/access-lists.ts';
import { RemoteAdmin } from '../../../src/capabilities/remote-admin/remote-admin.ts';
import { isoTime } from '../../../src/foundation/clock.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AccessRepository } from '../../../src/foundation/store/access.ts';
import { AuditStore } from '../../../src/foundation/store/audit.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import type { AccessRequest } from '../../../src/network/links/types.ts';
import { remoteAdminHandlers } from '../../../src/operations/handlers/remote-admin.ts';
import { AUDIT_PAGE_DEFAULT, AUDIT_PAGE_MAX, remoteAdminOperations } from '../../../src/operations/remote-admin.ts';
import { testAid } from '../../support/agents.ts';
import { cheapDerivation } from '../../support/cheap-scrypt.ts';
import { operationRunner } from '../../support/run-operation.ts';
import { TestClock } from '../../support/test-clock.ts';

const [FRIEND, STRANGER] = [testAid(1), testAid(2)];
const CALLER = { caller: FRIEND, address: '192.0.2.1', nodeKey: '09'.repeat(32) };

function setUp() {
  const clock = new TestClock();
  const store = Store.open(':memory:', MIGRATIONS);
  const access = new AccessLists(new AccessRepository(store), clock, cheapDerivation);
  const remoteAdmin = new RemoteAdmin({
    memory: new MetaStore(store),
    audit: new AuditStore(store),
    clock,
    log: silentLog,
    isNamed: () => false,
    authorize: () => {},
    serve: () => {},
  });
  const request: AccessRequest = {
    caller: STRANGER,
    called: testAid(3),
    purpose: 'admin',
    accessToken: undefined,
    nodeKey: null,
    source: null,
  };
  const run = operationRunner(remoteAdminOperations, remoteAdminHandlers({ remoteAdmin, access }));
  return { run, access, remoteAdmin, request, now: () => isoTime(clock.now()), clock };
}

function idOf(entry: unknown): string {
  assert.ok(typeof entry === 'object' && entry !== null && 'id' in entry && typeof entry.id === 'string');
  return entry.id;
}

test('remote administration is off at first, and reports each change', async () => {
  const { run, remoteAdmin } = setUp();
  const off = { enabled: false, allow: [], deny: [], last_access: null, last_refused: null };
  assert.deepEqual(await run('remoteAdminGet'), off);
  assert.deepEqual(await run('remoteAdminPatch', { body: { enabled: true } }), { ...off, enabled: true });
  assert.equal(remoteAdmin.enabled, true);
  assert.deepEqual(await run('remoteAdminPatch', { body: { enabled: false } }), off);
  assert.equal(remoteAdmin.enabled, false);
  await assert.rejects(run('remoteAdminPatch', { body: { enabled: 'yes' } }), { code: 'invalid_request' });
  await assert.rejects(run('remoteAdminPatch', { body: {} }), { code: 'invalid_request' });
});

test("the lists are the node's, with the last accepted and the last refused caller", async () => {
  const { run, remoteAdmin, request, now, clock } = setUp();
  const allowed = await run('remoteAdminAllow', {
    body: { aid: FRIEND.toUpperCase(), label: 'laptop', expires_at: '2030-01-01T00:00:00Z' },
  });
  const denied = await run('remoteAdminDeny', { body: { aid: STRANGER } });
  const created_at = now();
  const allow = { id: idOf(allowed), aid: FRIEND, label: 'laptop', created_at, expires_at: '2030-01-01T00:00:00.000Z' };
  const deny = { id: idOf(denied), aid: STRANGER, created_at };
  assert.deepEqual([allowed, denied], [allow, deny]);
  clock.advance(1000);
  remoteAdmin.trail.request(CALLER, 'GET', '/status');
  const asked = now();
  clock.advance(1000);
  await assert.rejects(remoteAdmin.authorize(request), { code: 'access_denied' });
  assert.deepEqual(await run('remoteAdminGet'), {
    enabled: false,
    allow: [allow],
    deny: [deny],
    last_access: { aid: FRIEND, at: asked, method: 'GET', path: '/status' },
    last_refused: { aid: STRANGER, at: now(), reason: 'disabled' },
  });
  assert.deepEqual(await run('remoteAdminAllowDelete', { params: { id: allow.id } }), { ok: true });
  assert.deepEqual(await run('remoteAdminDenyDelete', { params: { id: deny.id } }), { ok: true });
  const { allow: none, deny: nobody } = remoteAdminView(await run('remoteAdminGet'));
  assert.deepEqual([none, nobody], [[], []]);
  for (const name of ['remoteAdminAllowDelete', 'remoteAdminDenyDelete'] as const)
    await assert.rejects(run(name, { params: { id: allow.id } }), { code: 'not_found' }, name);
});

function remoteAdminView(value: unknown): { allow: unknown; deny: unknown } {
  assert.ok(typeof value === 'object' && value !== null && 'allow' in value && 'deny' in value);
  return value;
}

test('a password is never shown, a generated one once', async () => {
  const { run, access } = setUp();
  const chosen = await run('remoteAdminAllow', { body: { secret: 'correct horse' } });
  assert.deepEqual(Object.keys(chosen ?? {}).sort(), ['created_at', 'id', 'secret_set']);
  const generated = await run('remoteAdminAllow', { body: { generate_secret: true } });
  assert.ok(typeof generated === 'object' && generated !== null && 'secret' in generated);
  const shown = JSON.stringify(await run('remoteAdminGet'));
  assert.ok(!shown.includes('horse') && !shown.includes(String(generated.secret)));
  assert.equal(access.view('node').allow.length, 2);
  for (const body of [
    {},
    { aid: FRIEND, secret: 'correct horse' },
    { secret: 'short' },
    { aid: FRIEND, expires_at: '2020-01-01T00:00:00Z' },
    { aid: FRIEND, label: 'x'.repeat(65) },
  ])
    await assert.rejects(run('remoteAdminAllow', { body }), { code: 'invalid_request' }, JSON.stringify(body));
  await assert.rejects(run('remoteAdminAllow', { body: { aid: 'aid1x' } }), { code: 'bad_aid' });
  await assert.rejects(run('remoteAdminDeny', { body: { aid: 'aid1x' } }), { code: 'bad_aid' });
});

interface AuditPage {
  readonly entries: readonly { readonly path: string | null }[];
  readonly next_cursor?: string;
}

test('the audit log shows requests and refusals, newest first', async () => {
  const { run, remoteAdmin, request, now } = setUp();
  const observed = remoteAdmin.trail.request(CALLER, 'POST', '/mcp/call');
  observed.tool('svc_status');
  observed.tool('svc_fetch');
  observed.answered(200);
  await assert.rejects(remoteAdmin.authorize(request), { code: 'access_denied' });
  const at = now();
  assert.deepEqual(await run('remoteAdminAudit'), {
    entries: [
      {
        id: 2,
        at,
        aid: STRANGER,
        node_key: null,
        address: null,
        method: null,
        path: null,
        tools: [],
        status: null,
        refused: 'disabled',
      },
      {
        id: 1,
        at,
        aid: FRIEND,
        node_key: CALLER.nodeKey,
        address: CALLER.address,
        method: 'POST',
        path: '/mcp/call',
        tools: ['svc_status', 'svc_fetch'],
        status: 200,
        refused: null,
      },
    ],
  });
});

test('the audit log is read in pages, to its end', async () => {
  const { run, remoteAdmin } = setUp();
  for (let i = 1; i <= AUDIT_PAGE_DEFAULT + 1; i++) remoteAdmin.trail.request(CALLER, 'GET', `/${i}`);
  const page = async (query: object): Promise<AuditPage> => (await run('remoteAdminAudit', { query })) as AuditPage;
  const paths = ({ entries }: AuditPage) => entries.map(({ path }) => path);
  const first = await page({});
  assert.equal(first.entries.length, AUDIT_PAGE_DEFAULT);
  assert.equal(first.entries[0]?.path, `/${AUDIT_PAGE_DEFAULT + 1}`);
  const last = await page({ cursor: first.next_cursor });
  assert.deepEqual(paths(last), ['/1']);
  assert.equal(last.next_cursor, undefined);
  assert.deepEqual(paths(await page({ limit: '2', cursor: '4' })), ['/3', '/2']);
  assert.deepEqual(await page({ limit: '2', cursor: '1' }), { entries: [] });
  const queries = [{ limit: '0' }, { limit: String(AUDIT_PAGE_MAX + 1) }, { cursor: '0' }, { cursor: 'x' }];
  for (const query of [...queries, { cursor: '1'.repeat(21) }])
    await assert.rejects(page(query), { code: 'invalid_request' }, JSON.stringify(query));
});
