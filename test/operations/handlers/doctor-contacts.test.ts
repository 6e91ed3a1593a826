/** The doctor's findings about contacts. An invitation names every address of a node, and some may never answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Exit, OVER_UDP } from '../../../src/foundation/domain/exit.ts';
import type { MeetingState } from '../../../src/foundation/domain/joining.ts';
import { examineContacts } from '../../../src/operations/handlers/doctor/network.ts';
import { testAid } from '../../support/agents.ts';
import { EXITS } from '../../support/exits.ts';

const [ANN, BEN] = [testAid(1), testAid(2)];

interface Listed {
  /** Default: joined. */
  readonly joined?: boolean;
  /** Default: false, unless the contact is met. */
  readonly hasAnswered?: boolean;
  readonly exit?: Exit;
}

/** The findings about contacts, given the result of the last attempt for each. */
function texts(contacts: Readonly<Record<string, MeetingState>>, listed: Listed = {}): string[] {
  const { joined = true, hasAnswered = false, exit = OVER_UDP } = listed;
  const rows = Object.entries(contacts).map(([contact, state]) => {
    return { contact, state, joined, has_answered: hasAnswered || state === 'met', addresses: [] };
  });
  return examineContacts(rows, exit).map(({ what }) => what);
}

test('one reachable address of an invited node is enough', () => {
  const lan = `${ANN}@192.168.1.7:4121`;
  const outside = `${ANN}@203.0.113.9:4121`;
  assert.deepEqual(texts({ [lan]: 'silent', [outside]: 'met' }), []);
  assert.deepEqual(texts({ [lan]: 'met', [outside]: 'silent' }), []);
  assert.deepEqual(texts({ [lan]: 'silent', [outside]: 'untried' }), [`${lan} does not answer`]);
  assert.deepEqual(texts({ [lan]: 'silent', [outside]: 'silent' }), [
    `${lan} does not answer`,
    `${outside} does not answer`,
  ]);
});

test('a second address of a node is no problem, even if it cannot work', () => {
  const outside = `${ANN}@203.0.113.9:4121`;
  assert.deepEqual(texts({ [`${ANN}@[2001:db8::9]:4121`]: 'ipv6', [outside]: 'met' }), []);
  assert.deepEqual(texts({ [`${ANN}@vps.example:4121`]: 'unresolved', [outside]: 'met' }), []);
  assert.deepEqual(texts({ [`${ANN}@198.51.100.9:4121`]: 'silent', [outside]: 'met' }), []);
  assert.deepEqual(
    texts({ [`${ANN}@192.168.1.7:4121`]: 'other_key', [outside]: 'met' }),
    [],
    'it is a machine of this LAN',
  );
  assert.equal(texts({ [`${ANN}@198.51.100.9:4121`]: 'other_key', [outside]: 'met' }).length, 1);
});

test('the LAN address of a node behind a NAT is no problem for a guest that joined through other nodes', () => {
  const lan = `${ANN}@192.168.1.7:4121`;
  const helper = `${BEN}@203.0.113.9:4121`;
  assert.deepEqual(texts({ [lan]: 'silent', [helper]: 'met' }), []);
  assert.deepEqual(texts({ [lan]: 'other_key', [helper]: 'met' }), []);
  assert.deepEqual(texts({ [lan]: 'silent', [helper]: 'silent' }).length, 2);
  const lost = [`${lan} does not answer`];
  assert.deepEqual(texts({ [lan]: 'silent', [helper]: 'met' }, { hasAnswered: true }), lost, 'it has answered before');
  assert.deepEqual(texts({ [lan]: 'silent', [helper]: 'met' }, { joined: false }), lost, 'the owner has configured it');
});

test('another node, an address without a key and a wrong key do not count', () => {
  const silent = `${ANN}@198.51.100.7:4121`;
  assert.deepEqual(texts({ [silent]: 'silent', [`${BEN}@203.0.113.9:4121`]: 'met' }), [`${silent} does not answer`]);
  assert.deepEqual(texts({ '192.0.2.7:4121': 'silent', '203.0.113.9:4121': 'met' }), [
    '192.0.2.7:4121 does not answer',
  ]);
});

test('over TLS, the helper in use need not answer over UDP, and names need no DNS behind a proxy', () => {
  const name = { 'h1.example:4121': 'unresolved', 'h2.example:4121': 'ipv6' } as const;
  assert.equal(texts(name).length, 2);
  assert.equal(texts(name, { exit: { ...EXITS['udp-blocked'], helper: 'h2.example:443' } }).length, 1);
  assert.equal(texts(name, { exit: { ...EXITS['connect-proxy'], helper: 'h2.example:443' } }).length, 0);
  assert.equal(texts({ '203.0.113.10:4121': 'silent' }, { exit: EXITS['udp-blocked'] }).length, 0);
});
