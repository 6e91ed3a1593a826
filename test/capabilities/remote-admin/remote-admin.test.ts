/** Authorization of remote administrators, and the lifetime of their sessions. */
import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import {
  MAX_SESSIONS,
  MAX_SESSIONS_PER_CALLER,
  RemoteAdmin,
} from '../../../src/capabilities/remote-admin/remote-admin.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { AuditStore } from '../../../src/foundation/store/audit.ts';
import { MetaStore } from '../../../src/foundation/store/meta.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { asLink, localPair } from '../../../src/network/links/stream.ts';
import type { AccessRequest, LinkStream } from '../../../src/network/links/types.ts';
import { testAid } from '../../support/agents.ts';
import { settle } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const [ADMIN, OTHER, NODE] = [testAid(1), testAid(2), testAid(3)];

function world(store = Store.open(':memory:', MIGRATIONS)) {
  const served: Duplex[] = [];
  const refuses = new Set<Aid>();
  let ask = (): void | Promise<void> => {};
  const admin = new RemoteAdmin({
    memory: new MetaStore(store),
    audit: new AuditStore(store),
    clock: new TestClock(),
    log: silentLog,
    isNamed: () => false,
    authorize: ({ caller }) => {
      if (refuses.has(caller)) throw new SvcError('access_denied');
      return ask();
    },
    serve: (stream) => void served.push(stream),
  });
  const link = (caller: Aid = ADMIN): LinkStream => {
    const [near, far] = localPair();
    near.on('error', () => {});
    const names = { caller, called: NODE, purpose: 'admin', accessToken: undefined, nodeKey: null } as const;
    return asLink(far, names, () => ({ kind: 'local', remote: null, source: null, rttMs: 0 }));
  };
  const open = (caller?: Aid): LinkStream => {
    const one = link(caller);
    admin.accept(one);
    return one;
  };
  const request: AccessRequest = {
    caller: ADMIN,
    called: NODE,
    purpose: 'admin',
    accessToken: undefined,
    nodeKey: new Uint8Array([1, 2]),
    source: '192.0.2.1',
  };
  return {
    store,
    served,
    refuses,
    admin,
    open,
    request,
    /** The outcome of the access list. */
    answer: (next: () => void | Promise<void>) => {
      ask = next;
    },
  };
}

test('it is off by default, and the setting survives a restart', async () => {
  const { admin, store, open, request, served } = world();
  assert.equal(admin.enabled, false);
  assert.equal(open().destroyed, true);
  await assert.rejects(admin.authorize(request), { code: 'access_denied' });
  assert.equal(admin.trail.lastRefusal()?.reason, 'disabled');
  admin.setEnabled(true);
  assert.equal(world(store).admin.enabled, true);
  await admin.authorize(request);
  assert.equal(open().destroyed, false);
  assert.equal(served.length, 1);
});

test('switching it off closes every session, and switching it on closes none', async () => {
  const { admin, open } = world();
  admin.setEnabled(true);
  const links = [open(), open(OTHER)];
  admin.setEnabled(true);
  assert.equal(admin.sessions, 2);
  assert.ok(links.every((link) => !link.destroyed));
  admin.setEnabled(false);
  assert.ok(links.every((link) => link.destroyed));
  await settle();
  assert.equal(admin.sessions, 0);
});

test('a refusal is recorded with its reason and caller', async () => {
  const { admin, refuses, request, answer } = world();
  admin.setEnabled(true);
  refuses.add(ADMIN);
  await assert.rejects(admin.authorize(request), { code: 'access_denied' });
  const [entry] = admin.trail.memory.page(1);
  assert.partialDeepStrictEqual(entry, {
    caller: ADMIN,
    nodeKey: '0102',
    address: '192.0.2.1',
    reason: 'access_denied',
  });
  refuses.clear();
  answer(() => {
    throw new SvcError('rate_limited');
  });
  await assert.rejects(admin.authorize({ ...request, nodeKey: null }), { code: 'rate_limited' });
  assert.equal(admin.trail.lastRefusal()?.reason, 'rate_limited');
});

test('switching it off during the check of a secret rejects the caller', async () => {
  const { admin, request, answer } = world();
  admin.setEnabled(true);
  answer(async () => admin.setEnabled(false));
  await assert.rejects(admin.authorize(request), { code: 'access_denied' });
});

test('sessions are limited per administrator and in total', () => {
  const { admin, open } = world();
  admin.setEnabled(true);
  const mine = Array.from({ length: MAX_SESSIONS_PER_CALLER + 1 }, () => open());
  assert.deepEqual(
    mine.map(({ destroyed }) => destroyed),
    mine.map((_, i) => i === MAX_SESSIONS_PER_CALLER),
  );
  for (let i = 0; i < MAX_SESSIONS - MAX_SESSIONS_PER_CALLER; i++)
    assert.equal(open(testAid(100 + i)).destroyed, false);
  assert.equal(admin.sessions, MAX_SESSIONS);
  assert.equal(open(OTHER).destroyed, true);
});

test('a change of the access list closes only sessions that it no longer allows', async () => {
  const { admin, open, refuses } = world();
  admin.setEnabled(true);
  const [mine, others] = [open(), open(OTHER)];
  refuses.add(OTHER);
  await admin.recheck();
  assert.deepEqual([mine.destroyed, others.destroyed], [false, true]);
});

test('stop closes all sessions and rejects new ones', () => {
  const { admin, open } = world();
  admin.setEnabled(true);
  const link = open();
  admin.stop();
  assert.equal(link.destroyed, true);
  assert.equal(open().destroyed, true);
});
