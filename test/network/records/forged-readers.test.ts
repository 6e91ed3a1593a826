import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock, unixSeconds } from '../../../src/foundation/clock.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { serviceKey } from '../../../src/foundation/records/keys.ts';
import { RECORD } from '../../../src/foundation/records/types.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { DhtEngine } from '../../../src/network/records/engine.ts';
import { COMMAND, encodeFindRequest } from '../../../src/network/records/messages.ts';
import { networkTag, nodeId } from '../../../src/network/records/node-address.ts';
import { NodeClient } from '../../../src/network/records/node-client.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { NodeServer, RecordHost } from '../../../src/network/records/record-host.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { eventually } from '../../support/eventually.ts';
import { rawRequest, rawSocket } from '../../support/hostile-dht.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord, serviceRecord } from '../../support/records.ts';

const NETWORK = 'forged readers';
const TAG = networkTag(NETWORK);
const LARGE = 'lang.translate';
const RECORDS = 990;
/** Datagrams of the attack: at 150 a second, the budgets of a minute. */
const FORGED = 400;
const ADDRESSES = 10;
const READS = 40;

/** The clock never advances, so budgets do not refill. */
const clock: Clock = { ...systemClock, now: () => systemClock.now(), monotonic: () => 0 };

async function engineFor(t: TestContext): Promise<DhtEngine> {
  const engine = new DhtEngine(
    { host: '127.0.0.1', port: 0, tag: TAG },
    { clock, health: new PeerHealth({ clock }), isOwnHost: () => false, sourceTo: () => null },
  );
  await engine.start();
  t.after(() => engine.stop());
  return engine;
}

test('datagrams with forged sources that read large keys do not silence a node for readers', async (t) => {
  const now = unixSeconds(clock);
  const store = new RecordStore({ file: ':memory:', maxBytes: 64 * 1024 * 1024 }, { clock, log: silentLog });
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  const engine = await engineFor(t);
  const options = { nodeKey: new Uint8Array(32), tag: TAG };
  const host = new RecordHost(options, clock, silentLog, verifier, () => 0, store, engine);
  const server = new NodeServer(silentLog, host, engine);
  t.after(() => host.stop());
  let handled = 0;
  engine.events.request.add((request) => void server.onRequest(request).then(() => handled++));
  const owner = newIdentity();
  const put = (name: string, published: ReturnType<typeof serviceRecord>): void =>
    assert.equal(store.offer(serviceKey(name), published.record, published.record.aid).code, 'kept');
  for (let i = 0; i < RECORDS; i++) put(LARGE, serviceRecord(LARGE, newIdentity(), { timestamp: now }));
  const small = Array.from({ length: READS }, () => endpointRecord(newIdentity(), { timestamp: now }));
  for (const { key, record } of small) store.offer(key, record, 'publisher');

  // A forger receives no answer, so it has no token. Here each port counts as one address.
  const forgers = await Promise.all(Array.from({ length: ADDRESSES }, () => rawSocket(t)));
  const value = encodeFindRequest({ types: [], wantsRecords: true });
  for (let i = 0; i < FORGED; i++) {
    // Any change under a key invalidates its rows in memory, like the reads of other large keys.
    if (i % 4 === 0) put(LARGE, serviceRecord(LARGE, owner, { timestamp: now, seq: i + 1 }));
    const find = rawRequest(engine.address, { command: COMMAND.find, target: serviceKey(LARGE), value }, NETWORK);
    forgers[i % ADDRESSES]?.send(find, engine.address.port, engine.address.host);
    await eventually('the datagram is handled', () => handled === i + 1);
  }

  const reader = await engineFor(t);
  const nodeRequests = { request: async () => new Uint8Array(), onRequest: () => {} };
  const client = new NodeClient(clock, verifier, nodeRequests, TAG, reader);
  const { address } = engine;
  const request = encodeFindRequest({ types: [RECORD.endpoints], wantsRecords: true });
  const answers = await Promise.all(small.map(({ key }) => client.find(address, nodeId(address), key, request)));
  assert.equal(answers.filter((answer) => answer?.reply.records.length === 1).length, READS);
});
