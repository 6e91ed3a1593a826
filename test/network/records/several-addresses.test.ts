import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from '../../support/programs.ts';

const NODES = fileURLToPath(new URL('../../support/several-addresses.ts', import.meta.url));
const LAN = '10.77.0.5';

/** A machine with one address on a LAN, in a network namespace. */
const MACHINE = [
  'ip link set lo up',
  'ip link add lan0 type veth peer name lan1',
  `ip addr add ${LAN}/24 dev lan0`,
  'ip link set lan0 up',
  'ip link set lan1 up',
].join(' && ');

test('nodes of one machine find each other on any of its addresses, also after a restart', async (t) => {
  const allowed = await run('unshare', ['-rn', 'sh', '-c', MACHINE]);
  if (allowed.code !== 0) return t.skip('needs network namespaces (unshare) and iproute2');
  const { code, stdout, stderr } = await run('unshare', [
    '-rn',
    'sh',
    '-c',
    `${MACHINE} && exec "${process.execPath}" "${NODES}" ${LAN}`,
  ]);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), []);
});
