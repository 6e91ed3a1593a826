/** The doctor's findings about contacts. An invitation names every address of a node, and some may never answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MeetingState } from '../../../src/foundation/domain/joining.ts';
import { examineContacts } from '../../../src/operations/handlers/doctor/network.ts';
import { testAid } from '../../support/agents.ts';

const [ANN, BEN] = [testAid(1), testAid(2)];

/** The findings about contacts, given the result of the last attempt for each. */
function said(contacts: Readonly<Record<string, MeetingState>>): string[] {
  const rows = Object.entries(contacts).map(([contact, state]) => ({ contact, state, joined: true, addresses: [] }));
  return examineContacts(rows).map(({ what }) => what);
}

test('one reachable address of an invited node is enough', () => {
  const lan = `${ANN}@192.168.1.7:4121`;
  const outside = `${ANN}@203.0.113.9:4121`;
  assert.deepEqual(said({ [lan]: 'silent', [outside]: 'met' }), []);
  assert.deepEqual(said({ [lan]: 'met', [outside]: 'silent' }), []);
  assert.deepEqual(said({ [lan]: 'silent', [outside]: 'untried' }), [`${lan} does not answer`]);
  assert.deepEqual(said({ [lan]: 'silent', [outside]: 'silent' }), [
    `${lan} does not answer`,
    `${outside} does not answer`,
  ]);
});

test('another node, an address without a key and a wrong key do not count', () => {
  const silent = `${ANN}@192.168.1.7:4121`;
  assert.deepEqual(said({ [silent]: 'silent', [`${BEN}@203.0.113.9:4121`]: 'met' }), [`${silent} does not answer`]);
  assert.deepEqual(said({ '192.0.2.7:4121': 'silent', '203.0.113.9:4121': 'met' }), ['192.0.2.7:4121 does not answer']);
  assert.equal(said({ [silent]: 'other_key', [`${ANN}@203.0.113.9:4121`]: 'met' }).length, 1);
});
