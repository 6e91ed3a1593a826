import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { AttackFigures, AttackOptions } from '../../support/dht-attack/attack-options.ts';
import { PUBLIC_MACHINE } from '../../support/dht-attack/places.ts';
import { run } from '../../support/programs.ts';

const ATTACK = fileURLToPath(new URL('../../support/dht-attack/bought-places.ts', import.meta.url));
/** The part of reads that has to find what was written. */
const ENOUGH = 0.99;

async function attack(changed: Partial<AttackOptions>): Promise<AttackFigures> {
  const script = `${PUBLIC_MACHINE} && exec "${process.execPath}" "${ATTACK}" '${JSON.stringify(changed)}'`;
  const { code, stdout, stderr } = await run('unshare', ['-rn', 'sh', '-c', script]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('4,096 addresses in 16 networks do not buy the places of a mailbox, a service name or an agent', async (t) => {
  const allowed = await run('unshare', ['-rn', 'sh', '-c', PUBLIC_MACHINE]);
  if (allowed.code !== 0) return t.skip('needs network namespaces (unshare) and iproute2');
  const { taken, behindOne, reads } = await attack({
    reads: 40,
    manners: [{}, { lie: 'stale', names: 'phantoms' }],
  });
  // They stand there: what holds is not that they were kept away.
  assert.deepEqual(taken, [16, 16, 16]);
  assert.equal(behindOne, 1, 'nodes behind one address write and read');
  for (const { mailbox, service, endpoints, ...manner } of reads)
    for (const [what, part] of Object.entries({ mailbox, service, endpoints }))
      assert.ok(part >= ENOUGH, `${part} of the reads of the ${what} while they are ${JSON.stringify(manner)}`);
});
