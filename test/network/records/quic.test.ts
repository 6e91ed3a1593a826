/** The record network with large records over real QUIC. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../src/foundation/address.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { agentKey, mailboxKey } from '../../../src/foundation/records/keys.ts';
import { MAX_NOTE_PAYLOAD_BYTES, RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { PooledNodeRequests } from '../../../src/network/links/node-requests.ts';
import { PeerTable } from '../../../src/network/peers/peer-table.ts';
import { RecordDht } from '../../../src/network/records/record-dht.ts';
import { NativeQuicEndpoint } from '../../../src/network/transport/quic/native-endpoint.ts';
import { newIdentity } from '../../support/identities.ts';
import { largeRecord, noteRecord, serviceRecord } from '../../support/records.ts';
import { reached } from '../../support/testnet-dht.ts';

const LOOPBACK = { host: '127.0.0.1', port: 0 };

async function start(t: TestContext, bootstrap: readonly Address[]): Promise<RecordDht> {
  const key = KeyPair.generate();
  const shared = { clock: systemClock, log: silentLog };
  const endpoint = new NativeQuicEndpoint({ key, ...LOOPBACK }, shared);
  const pool = new PeerTable({ nodeKey: key.publicKey, network: 'test' }, { ...shared, endpoint });
  const dht = new RecordDht(
    {
      listen: LOOPBACK,
      bootstrap,
      network: 'test',
      nodeKey: key.publicKey,
      maxStoreBytes: 32 * 1024 * 1024,
      storeFile: ':memory:',
      minObservedPeers: 3,
    },
    {
      ...shared,
      verifier: new RecordVerifier({}, { delegations: new DelegationVerifier() }),
      nodeRequests: new PooledNodeRequests({ pool, clock: systemClock }),
      random: Math.random,
      quicPort: () => endpoint.address.port,
      proveKey: async () => true,
    },
  );
  await endpoint.start();
  await pool.start();
  await dht.start();
  t.after(async () => {
    await dht.stop();
    await pool.stop();
    await endpoint.stop();
  });
  return dht;
}

test('large records and long lists are sent over the connections between nodes', async (t) => {
  const a = await start(t, []);
  const b = await start(t, [a.address]);
  const c = await start(t, [a.address]);
  for (const dht of [a, b, c]) await reached(dht, (r) => r.ready && r.peers === 2);

  const owner = newIdentity();
  const { record } = largeRecord(owner);
  assert.equal((await a.put(agentKey(owner.aid), record)).replicas, 2);
  const found = await c.get(agentKey(owner.aid), RECORD.profile);
  assert.deepEqual(Buffer.from(found?.encoded ?? []), Buffer.from(record.encoded));

  const notes = Array.from({ length: 12 }, () => noteRecord(owner, MAX_NOTE_PAYLOAD_BYTES - 32));
  for (const note of notes) assert.equal((await b.put(note.key, note.record)).replicas, 2);
  const listed = await c.list(mailboxKey(owner.aid), [RECORD.note]);
  assert.equal(listed.length, notes.length, 'several pages of the largest notes');

  const services = Array.from({ length: 100 }, () => serviceRecord('lang.translate'));
  for (const service of services) await a.put(service.key, service.record);
  assert.equal((await b.list(services[0]?.key ?? new Uint8Array(32), [RECORD.service])).length, 100);
});
