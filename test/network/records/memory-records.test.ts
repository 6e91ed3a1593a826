import { MemoryRecordHub, MemoryRecordNetwork } from '../../support/memory-records.ts';
import { recordNetworkCompliance } from './compliance.ts';

recordNetworkCompliance('in memory', async (_t, clock) => {
  const hub = new MemoryRecordHub(clock);
  const nodes = [new MemoryRecordNetwork(hub), new MemoryRecordNetwork(hub), new MemoryRecordNetwork(hub)] as const;
  for (const node of nodes) await node.start();
  return nodes;
});
