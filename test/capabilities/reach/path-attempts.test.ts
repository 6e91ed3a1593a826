import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PathFacts, pathAttempts } from '../../../src/capabilities/reach/path-attempts.ts';
import type { Address } from '../../../src/foundation/address.ts';
import type { PathKind } from '../../../src/foundation/domain/tunnels.ts';
import { STAGGER_MS } from '../../../src/network/peers/dial.ts';
import { kindByScope, plainPath } from '../../../src/network/transport/path.ts';
import { testKeys } from '../../support/agents.ts';

const HELPER = { nodeKey: testKeys(2).publicKey, address: { host: '198.51.100.7', port: 4122 } };
const [LAN, PUBLIC, PUBLIC_V6] = ['10.0.0.2', '203.0.113.9', '2001:db8::9'].map((host) => ({ host, port: 4122 }));
assert.ok(LAN !== undefined && PUBLIC !== undefined && PUBLIC_V6 !== undefined);

const FACTS: PathFacts = {
  place: { nodeKey: testKeys(1).publicKey, addresses: [PUBLIC, PUBLIC_V6, LAN], helpers: [HELPER], natType: 3 },
  ways: [
    { kind: 'direct', delayMs: 0, mayLead: true },
    { kind: 'punched', delayMs: 300, mayLead: true },
    { kind: 'relay', delayMs: 1000, mayLead: true },
    { kind: 'turn', delayMs: 1000, mayLead: false },
  ],
  sides: { ours: 'cone', theirs: 3, helpers: 1, haveIpv6: false },
  link: null,
  relaysAllowed: true,
  hasIpv6: false,
  kindOf: kindByScope,
};

function seen(facts: PathFacts) {
  return pathAttempts(facts).map(({ path, afterMs, to, mayLead }) => [
    path,
    afterMs,
    to.map(({ host }) => host),
    mayLead,
  ]);
}

test('paths are in order: addresses by kind and family, then helpers', () => {
  assert.deepEqual(seen(FACTS), [
    ['direct', 0, [PUBLIC.host], null],
    ['direct', STAGGER_MS, [PUBLIC_V6.host], false],
    ['lan', 2 * STAGGER_MS, [LAN.host], null],
    ['punched', 300, [HELPER.address.host], true],
    ['relay', 1000, [HELPER.address.host], true],
    ['turn', 1000, [], false],
  ]);
  assert.equal(seen({ ...FACTS, hasIpv6: true })[1]?.[3], null);
});

test('the path of the current connection works, whatever the NATs are', () => {
  const mayLead = (kind: PathKind, remote: Address): readonly unknown[] =>
    seen({ ...FACTS, sides: { ...FACTS.sides, ours: 'unknown' }, link: { path: plainPath(kind, remote) } }).map(
      ([, , , may]) => may,
    );
  const elsewhere = { host: '192.0.2.1', port: 5 };
  assert.deepEqual(mayLead('direct', PUBLIC), [true, false, null, null, true, false]);
  assert.deepEqual(mayLead('direct', elsewhere), [null, false, null, null, true, false]);
  assert.deepEqual(mayLead('punched', elsewhere), [null, false, null, true, true, false]);
});

test('an impossible path has a reason', () => {
  const facts: PathFacts = {
    ...FACTS,
    relaysAllowed: false,
    sides: { ours: 'symmetric', theirs: 4, helpers: 1, haveIpv6: false },
  };
  const ways = pathAttempts(facts).filter(({ path }) => path === 'punched' || path === 'relay');
  assert.deepEqual(
    ways.map(({ mayLead }) => mayLead),
    [false, false],
  );
  assert.match(ways[0]?.note ?? '', /Only a relay/);
  assert.match(ways[1]?.note ?? '', /disable_relay/);
});

test('a path over servers reports missing parts', () => {
  const ways = [
    { kind: 'relay', delayMs: 0, mayLead: false },
    { kind: 'turn', delayMs: 0, mayLead: false },
    { kind: 'turn', delayMs: 0, mayLead: true },
  ] as const;
  assert.deepEqual(
    pathAttempts({ ...FACTS, ways }).map(({ note }) => note),
    [
      'No relay is known.',
      'Neither node has a TURN server.',
      'A helper forwards encrypted packets until another path works.',
    ],
  );
});
