import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { AttackFigures, AttackOptions } from '../../support/dht-attack/attack-options.ts';
import { PUBLIC_MACHINE } from '../../support/dht-attack/positions.ts';
import { run } from '../../support/programs.ts';
import { scaled } from '../../support/scale.ts';

const ATTACK = fileURLToPath(new URL('../../support/dht-attack/eclipse-attack.ts', import.meta.url));
/** Fraction of reads that must find the record. */
const ENOUGH = 0.99;

async function attack(changed: Partial<AttackOptions>): Promise<AttackFigures> {
  const script = `${PUBLIC_MACHINE} && exec "${process.execPath}" "${ATTACK}" '${JSON.stringify(changed)}'`;
  const { code, stdout, stderr } = await run('unshare', ['-rn', 'sh', '-c', script]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('an attacker with 4,096 addresses in 16 networks cannot hide the records of a mailbox, a service name or an agent', async (t) => {
  const allowed = await run('unshare', ['-rn', 'sh', '-c', PUBLIC_MACHINE]);
  if (allowed.code !== 0) return t.skip('needs network namespaces (unshare) and iproute2');
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
