/** The doctor's findings about public names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examinePublicNames } from '../../../src/operations/handlers/doctor/public-names.ts';

test('each state of a name and of a domain has a finding, and failures have a remedy', async () => {
  const findings = await examinePublicNames({
    names: () => ['a.vps.test', 'b.vps.test', 'c.vps.test', 'd.vps.test'],
    domains: () => ['vps.test', 'other.test'],
    probe: async (name) => {
      const states = { a: 'answers', b: 'unresolved', c: 'unreachable' } as const;
      const [label = ''] = name.split('.');
      return label in states ? states[label as keyof typeof states] : 'other';
    },
    resolve: async (host) => {
      if (host.endsWith('.other.test')) throw new Error('no address');
      return ['203.0.113.10'];
    },
  });
  assert.deepEqual(
    findings.map(({ level, what }) => `${level} ${what}`),
    [
      'PASS names below vps.test lead to 203.0.113.10',
      'FAIL names below other.test have no address, so this entry receives no connections',
      'PASS https://a.vps.test reaches this node through its entry',
      'FAIL b.vps.test has no address',
      'FAIL https://c.vps.test does not answer',
      'WARN a server without a certificate for d.vps.test answers there',
    ],
  );
  for (const { level, hint } of findings) assert.equal(hint === undefined, level === 'PASS');
  assert.match(findings[1]?.hint ?? '', /\*\.other\.test/);
  assert.match(findings[3]?.hint ?? '', /\*\.vps\.test/);
});

test('a node without public names has no findings about them', async () => {
  const none = { names: () => [], domains: () => [], probe: async () => 'other' as const, resolve: async () => [] };
  assert.deepEqual(await examinePublicNames(none), []);
});
