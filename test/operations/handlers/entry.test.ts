/** The operations on an entry, with its names in a real database. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EntryNames } from '../../../src/capabilities/entry/entry-names.ts';
import { nativePublicKey } from '../../../src/foundation/identity/aid.ts';
import { formatInvitation, parseInvitation } from '../../../src/foundation/invitation.ts';
import { EntryStore } from '../../../src/foundation/store/entry.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { entryHandlers } from '../../../src/operations/handlers/entry.ts';
import { testAid } from '../../support/agents.ts';
import { withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const CONTEXT = {} as never;
const AID = testAid(1);

function setUp(domains: readonly string[] = ['vps.example.org']) {
  const names = new EntryNames(domains, new EntryStore(Store.open(':memory:', MIGRATIONS)), new TestClock());
  const failed: { port: number; trouble: 'in_use' | 'not_permitted' | 'unusable' }[] = [];
  const contact = { host: '203.0.113.7', port: 4121, nodeKey: nativePublicKey(AID) ?? new Uint8Array() };
  const handlers = entryHandlers({
    entry: {
      usage: { connections: 2, unread: 1, accepted: 3, refused: 4, failed: 5, bytes: 6 },
      connectionsOf: (name) => name.length,
    },
    entryNames: names,
    joining: {
      invite: async (more) => ({
        invitation: formatInvitation({ from: AID, network: '', contacts: [contact], token: more?.token }),
        name: '',
        network: '',
        contacts: [contact],
        reach: 'anywhere',
        tlsPorts: [443],
      }),
    },
    lending: { addresses: [{ port: 4121 }], failed },
  });
  const show = async () => await handlers.entryShow({}, CONTEXT);
  return { names, handlers, failed, show };
}

test('the view has permitted agents, names with their connections, and totals', async () => {
  const { handlers, names, show } = setUp();
  await handlers.entryAllow({ aid: AID }, CONTEXT);
  assert.equal(names.handle({ action: 'claim', name: 'demo', token: null }, AID).verdict, 'ok');
  const at = '2026-01-01T00:00:00.000Z';
  const name = 'demo.vps.example.org';
  assert.deepEqual(await show(), {
    domains: ['vps.example.org'],
    ports: [4121],
    problem: null,
    allowed: [{ aid: AID, created_at: at }],
    names: [{ name, aid: AID, held_at: at, seen_at: at, connections: name.length }],
    ...{ connections: 2, accepted: 3, refused: 4, failed: 5, bytes: 6 },
  });
  await handlers.entryNameRemove({ name }, CONTEXT);
  assert.deepEqual((await show()).names, []);
  await handlers.entryDeny({ aid: AID }, CONTEXT);
  assert.deepEqual((await show()).allowed, []);
  assert.throws(() => handlers.entryDeny({ aid: AID }, CONTEXT), withCode('not_found'));
});

test('a port 443 of another program has its own code, with the remedy', async () => {
  const { failed, show } = setUp();
  failed.push({ port: 4121, trouble: 'in_use' });
  assert.equal((await show()).problem, null);
  failed.push({ port: 443, trouble: 'in_use' });
  const { problem } = await show();
  assert.equal(problem?.code, 'address_in_use');
  assert.match(problem.message, /^TCP port 443 is in use by another program\. Stop that program/);
  failed[1] = { port: 443, trouble: 'not_permitted' };
  assert.match((await show()).problem?.message ?? '', /is not allowed for svcd by the system\. Run "sudo svcd service/);
  const off = setUp([]);
  off.failed.push({ port: 443, trouble: 'in_use' });
  assert.equal((await off.show()).problem, null);
});

test('an invitation permits the agent that presents its token', async () => {
  const { handlers, names } = setUp();
  const { invitation } = await handlers.entryInvite({}, CONTEXT);
  const { token = '' } = parseInvitation(invitation);
  assert.equal(names.handle({ action: 'claim', name: 'demo', token }, AID).verdict, 'ok');
  assert.deepEqual(
    names.allowed().map(({ aid }) => aid),
    [AID],
  );
  await assert.rejects(async () => setUp([]).handlers.entryInvite({}, CONTEXT), withCode('wrong_state'));
});
