/** A node with a wrong clock among real nodes detects this from their refusals and timestamps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Clock, DAY_MS, systemClock, unixSeconds } from '../../../src/foundation/clock.ts';
import { OVER_UDP } from '../../../src/foundation/domain/exit.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { OutageDiagnosis } from '../../../src/network/reachability/outage-diagnosis.ts';
import { Resolver } from '../../../src/network/resolver.ts';
import { newIdentity } from '../../support/identities.ts';
import { endpointRecord } from '../../support/records.ts';
import { DhtTestnet } from '../../support/testnet-dht.ts';

/** A clock that is this far ahead. */
function ahead(ms: number): Clock {
  return {
    now: () => systemClock.now() + ms,
    monotonic: () => systemClock.monotonic(),
    after: (delay, task) => systemClock.after(delay, task),
  };
}

/** A network that allows UDP. */
const NO_LIMITS = {
  listenHosts: { missing: () => [] },
  exit: () => OVER_UDP,
  hasProxy: () => false,
  hasPlainProxyOnly: () => false,
};

for (const [others, aheadMs] of [
  [1, 2 * DAY_MS],
  [1, -2 * DAY_MS],
  [3, 2 * DAY_MS],
] as const)
  test(`with ${others} other nodes, all of them report that the clock is wrong by ${aheadMs / DAY_MS} days`, async () => {
    await using net = await DhtTestnet.start(others);
    const clock = ahead(aheadMs);
    const { dht } = await net.add({ clock });
    const trouble = new OutageDiagnosis({ clock, records: dht, interfaces: () => [], ...NO_LIMITS });
    const isWrong = { code: 'clock_wrong' };

    const since = clock.now();
    const { key, record } = endpointRecord(newIdentity(), { timestamp: unixSeconds(clock) });
    const { replicas, refused } = await dht.put(key, record);
    assert.deepEqual({ replicas, refused }, { replicas: 0, refused: { not_now: others } });
    const error = await trouble.explainFailure(since);
    assert.equal(error?.code, 'clock_wrong');
    const offsetS = Number(error.details?.['offset_s']);
    assert.ok(Math.abs(offsetS + aheadMs / 1000) < 60, `by ${offsetS} s`);
    assert.equal(dht.clockAheadMs() > 0, aheadMs > 0);

    // By this clock, records of other nodes are invalid.
    const theirs = endpointRecord();
    await net.at(0).dht.put(theirs.key, theirs.record);
    const lookupHost = async (): Promise<string[]> => [];
    const why = (begun: number) => trouble.explainFailure(begun);
    const resolver = new Resolver({ network: dht, clock, log: silentLog, lookupHost, explainFailure: why });
    await assert.rejects(resolver.resolve(theirs.record.aid), isWrong);
  });
