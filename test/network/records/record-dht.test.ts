import { systemClock } from '../../../src/foundation/clock.ts';
import { DhtTestnet, reached } from '../../support/testnet-dht.ts';
import { recordNetworkCompliance } from './compliance.ts';

recordNetworkCompliance('datagrams', async (t, clock) => {
  // The test controls the clock, but the timers are real: they only decide which nodes a lookup waits for.
  const net = await DhtTestnet.start(3, {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (ms, task) => systemClock.after(ms, task),
    },
  });
  t.after(() => net[Symbol.asyncDispose]());
  await Promise.all(net.nodes.map(({ dht }) => reached(dht, (r) => r.ready && r.peers === 2)));
  return [net.at(0).dht, net.at(1).dht, net.at(2).dht];
});
