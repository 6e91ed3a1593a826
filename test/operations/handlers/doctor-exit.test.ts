/** The findings about the way out of each kind of network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Exit } from '../../../src/foundation/domain/exit.ts';
import type { Examination, OwnAnswer } from '../../../src/operations/handlers/doctor/examination.ts';
import { examineNetwork } from '../../../src/operations/handlers/doctor/network.ts';
import { EXITS } from '../../support/exits.ts';

const CHECKED: OwnAnswer<'netcheck'> = {
  network_ready: true,
  dht_peers: 5,
  dht_clients: 0,
  exit: EXITS.udp,
  is_reached: true,
  nat_type: 1,
  nat_type_label: 'public or full cone',
  nat_mapping: 'open',
  addresses: [
    { address: '198.51.100.7:4122', source: 'observed', verified_by: 'peers', verified_at: null, published: true },
  ],
  ipv4: { addresses: 1, is_public: true, seen_as: '198.51.100.7:4122' },
  ipv6: { addresses: 0, is_public: false, seen_as: null },
  port_mapping: 'none',
  mapped_ports: [],
  helpers: [],
  helps_others: true,
  relays_allowed: true,
  clock: { offset_s: 0, peers: 5 },
};

/** The findings about the network, one line each. */
async function found(exit: Exit, isReady: boolean): Promise<string[]> {
  const checked = { ...CHECKED, exit, ...(isReady ? {} : { network_ready: false, dht_peers: 0 }) };
  const silent = { contact: '203.0.113.10:4121', joined: true, state: isReady ? 'met' : 'silent', addresses: [] };
  const status = { lent_ports: { listen_addrs: [], failed_addrs: [] } };
  const ask = { netcheck: () => checked, status: () => status, contacts: () => ({ contacts: [silent] }) };
  const examination = { ask, dialSome: async () => ({ dialled: 2, reached: isReady ? 2 : 0, isNarrow: false }) };
  const findings = await examineNetwork(examination as unknown as Examination);
  return findings
    .filter(({ check }) => check === 'network')
    .map(({ level, what, hint }) => `${level} ${what}${hint === undefined ? '' : ` | ${hint}`}`);
}

const WELL = ['PASS the network is ready, 5 nodes are known'];
const QUIC = 'PASS nodes answer over QUIC (2 of 2 dialed)';
const FASTER = 'Allow outgoing UDP for direct and faster paths.';

test('a node on UDP, or over TLS, is well, and the finding names the way out', async () => {
  assert.deepEqual(await found(EXITS.udp, true), [...WELL, QUIC]);
  const over = 'INFO this node is connected over TLS through helper 203.0.113.10:443';
  assert.deepEqual(await found(EXITS['udp-blocked'], true), [
    ...WELL,
    `${over}: no node answers over UDP | ${FASTER}`,
    QUIC,
  ]);
  assert.deepEqual(await found(EXITS['quic-dropped'], true), [
    ...WELL,
    `${over}: no node answers over QUIC | ${FASTER}`,
    QUIC,
  ]);
  assert.deepEqual(await found(EXITS['five-tuple-30s'], true), [
    ...WELL,
    `${over}: the network drops UDP flows some time after their start`,
    QUIC,
  ]);
  assert.deepEqual(await found(EXITS['ipv6-only'], true), [
    ...WELL,
    `${over}: no node answers over IPv4 | ${FASTER}`,
    QUIC,
  ]);
  assert.deepEqual(await found(EXITS.inspected, true), [
    ...WELL,
    `${over} and the proxy 10.2.0.1:3128: no node answers over UDP | ${FASTER}`,
    'INFO the network decrypts TLS; connections between nodes inside stay encrypted',
    QUIC,
  ]);
});

test('without a way out, the doctor names the cause only, not contacts that are silent for this reason', async () => {
  const failed = 'FAIL no node answers over UDP, and no helper can be reached over TLS';
  const { message: password } = EXITS['proxy-password'].error;
  assert.deepEqual(await found(EXITS['proxy-password'], false), [`${failed} | ${password}`]);
  const { message: login } = EXITS.portal.error;
  assert.deepEqual(await found(EXITS.portal, false), [`${failed} | ${login}`]);
  assert.deepEqual(await found(EXITS['without a helper'], false), [`${failed} | Allow outgoing UDP, or TCP port 443.`]);
  assert.deepEqual(await found(EXITS.searching, false), [
    'WARN no node answers over UDP, and no helper is connected over TLS yet | Wait a few seconds and try again.',
  ]);
  assert.deepEqual(await found(EXITS['quic-dropped, relays off'], true), [
    ...WELL,
    'FAIL no node answers over QUIC, and disable_relay excludes TLS | Allow outgoing UDP, or set disable_relay = false.',
  ]);
  assert.match((await found(EXITS.udp, false)).join(), /no other node is known.*203\.0\.113\.10:4121 does not answer/);
});
