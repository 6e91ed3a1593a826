/** A group with many entries, written into the database of a stopped daemon. */
import { join } from 'node:path';
import { Groups } from '../../src/capabilities/groups/groups.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { decodeDelegation } from '../../src/foundation/identity/delegation.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { parsePrivateKey } from '../../src/foundation/identity/keys.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { GroupEntryStore } from '../../src/foundation/store/group-entries.ts';
import { GroupStore } from '../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { TestDaemon } from '../../test/support/daemon.ts';

/** Entries per transaction. */
const BATCH = 1000;
/** Interval of entries that mention the agent. */
export const MENTION_EVERY = 100;

/** An agent with its signing key and delegation. */
export interface KnownAgent {
  readonly aid: Aid;
  readonly keyHex: string;
  readonly proofHex: string;
}

/** Creates, registers and publishes an agent and returns its key. */
export async function knownAgent(daemon: TestDaemon): Promise<KnownAgent> {
  const made = await daemon.call<Record<string, string>>('POST', '/identity/generate');
  const { operational_private_key_hex = '', delegation_proof_hex = '' } = made;
  const { aid } = await daemon.call<{ aid: Aid }>('POST', '/agents', {
    operational_private_key_hex,
    delegation_proof_hex,
  });
  await daemon.call('POST', `/agents/${aid}/publish`);
  return { aid, keyHex: operational_private_key_hex, proofHex: delegation_proof_hex };
}

/** Creates a group with `entries` messages in a data directory, as its daemon would. The daemon must not run. */
export function fillGroup(dataDir: string, agent: KnownAgent, entries: number): { groupId: string; link: string } {
  const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
  const key = parsePrivateKey(agent.keyHex);
  const delegation = decodeDelegation(new Uint8Array(Buffer.from(agent.proofHex.replace(/^0x/, ''), 'hex')));
  const identity = { aid: agent.aid, delegation, sign: (message: Uint8Array) => key.sign(message) };
  const groups = new Groups({
    isKnown: () => false,
    groups: new GroupStore(store),
    entries: new GroupEntryStore(store),
    links: {
      open: async () => Promise.reject(new SvcError('connect_failed')),
      accept: () => {},
      reset: () => {},
    },
    notes: { send: async () => Promise.reject(new SvcError('connect_failed')), onNote: () => {} },
    delegations: new DelegationVerifier(),
    events: { emit: () => 0 },
    clock: systemClock,
    log: silentLog,
    identity: (aid) => (aid === agent.aid ? identity : null),
    random: Math.random,
  });
  try {
    const made = groups.create(agent.aid, `${entries} entries`);
    for (let i = 0; i < entries; i += BATCH)
      store.transaction(() => {
        for (let n = i; n < Math.min(entries, i + BATCH); n++) {
          const to = n % MENTION_EVERY === 0 ? { to: [agent.aid] } : {};
          groups.append(agent.aid, made.groupId, { kind: 'msg', body: Buffer.from(`message ${n}`.padEnd(100)), ...to });
        }
      });
    return made;
  } finally {
    store.close();
  }
}
