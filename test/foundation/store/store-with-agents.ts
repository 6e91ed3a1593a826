import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type Delegation, issueDelegation } from '../../../src/foundation/identity/delegation.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid, testKeys } from '../../support/agents.ts';

/** The delegation of agent number `n`. Its operational key has the number 1,000 × `round` + `n`. */
export function testDelegation(n: number, round = 1, expiresAt = 0): Delegation {
  return issueDelegation(testKeys(n), testKeys(1000 * round + n).publicKey, 100 * round, expiresAt);
}

/** An in-memory database with the agents 1 to `count`. */
export function storeWithAgents(count: number): { store: Store; aids: readonly Aid[] } {
  const store = Store.open(':memory:', MIGRATIONS);
  const agents = new AgentStore(store);
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  for (const n of numbers)
    agents.put({ keyName: `key-${n}`, delegation: testDelegation(n), serviceTcp: '', registeredAt: n });
  return { store, aids: numbers.map(testAid) };
}

/** Equal bytes, 16 by default. */
export function bytes(fill: number, length = 16): Uint8Array {
  return new Uint8Array(length).fill(fill);
}
