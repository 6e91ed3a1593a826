import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { lentSource } from '../../../src/foundation/quota.ts';
import type { AttackFigures, AttackOptions, LentAttackFigures } from '../../support/dht-attack/attack-options.ts';
import { PUBLIC_MACHINE } from '../../support/dht-attack/positions.ts';
import { run } from '../../support/programs.ts';
import { scaled } from '../../support/scale.ts';

const ATTACK = fileURLToPath(new URL('../../support/dht-attack/eclipse-attack.ts', import.meta.url));
const LENT_ATTACK = fileURLToPath(new URL('../../support/dht-attack/lent-attack.ts', import.meta.url));
/** Fraction of reads that must find the record. */
const ENOUGH = 0.99;

/** Runs a script on a machine with public addresses. Returns what it prints. */
async function figuresOf<T>(path: string, options: object): Promise<T> {
  const script = `${PUBLIC_MACHINE} && exec "${process.execPath}" "${path}" '${JSON.stringify(options)}'`;
  const { code, stdout, stderr } = await run('unshare', ['-rn', 'sh', '-c', script]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

async function attack(changed: Partial<AttackOptions>): Promise<AttackFigures> {
  return await figuresOf(ATTACK, changed);
}

/** Whether this system has network namespaces. */
async function hasNamespaces(): Promise<boolean> {
  return (await run('unshare', ['-rn', 'sh', '-c', PUBLIC_MACHINE])).code === 0;
}

const NEEDS_NAMESPACES = 'needs network namespaces (unshare) and iproute2';

test('an attacker with 4,096 addresses in 16 networks cannot hide the records of a mailbox, a service name or an agent', async (t) => {
  if (!(await hasNamespaces())) return t.skip(NEEDS_NAMESPACES);
  const {
    hostileClosest: occupied,
    atSharedAddress,
    reads,
  } = await attack({
    honest: scaled(50, 200),
    atSharedAddress: scaled(6, 20),
    reads: scaled(20, 40),
    behaviors: [{}, { lie: 'stale', names: 'phantoms' }],
  });
  // The attacker does occupy all closest positions, but must not be able to hide records.
  assert.deepEqual(occupied, [16, 16, 16]);
  assert.equal(atSharedAddress, 1, 'nodes at a shared address write and read');
  for (const { mailbox, service, endpoints, ...behavior } of reads)
    for (const [what, part] of Object.entries({ mailbox, service, endpoints }))
      assert.ok(
        part >= ENOUGH,
        `${part} of the reads of the ${what} succeed when the attackers ${JSON.stringify(behavior)}`,
      );
});

test('an attacker with lent ports of four helpers gets no more places than with its own address', async (t) => {
  if (!(await hasNamespaces())) return t.skip(NEEDS_NAMESPACES);
  const figures = await figuresOf<LentAttackFigures>(LENT_ATTACK, {});
  assert.deepEqual(figures.throughLentPorts, []);
  assert.deepEqual(figures.directly, ['151.1.2.3']);
  assert.equal(figures.sourceOfBorrower, lentSource('62.1.2.3'));
  assert.equal(figures.sourceOfHelper, '62.1.2.3');
});
