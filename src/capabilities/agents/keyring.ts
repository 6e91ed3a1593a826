/** The operational keys of local agents: loaded when they are first needed, a bounded number in memory. */
import { createHash } from 'node:crypto';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import { decodeDelegation } from '../../foundation/identity/delegation.ts';
import type { KeyPair } from '../../foundation/identity/keys.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { KeyVault } from './types.ts';

/** Identities kept in memory. */
const MAX_CACHED = 2000;
/** Agents of which it is kept in memory that they are not here: each link that is opened asks for the other one. */
const MAX_ABSENT = 8192;
/** Names of our keys in the vault begin with it; other components have names of their own. */
const NAME_PREFIX = 'agent-';
/** Names of foreign keys that the log shows. */
const MAX_LISTED = 10;

/** The name of an agent's key: one per agent and key, so that a rotation never overwrites. */
export function keyName(aid: Aid, operationalKey: Uint8Array): string {
  const digest = createHash('sha256').update(aidToBytes(aid)).update(operationalKey).digest('hex');
  return `${NAME_PREFIX}${digest.slice(0, 32)}`;
}

interface KeyringDependencies {
  readonly agents: AgentStore;
  readonly vault: KeyVault;
  readonly log: Log;
}

export class Keyring {
  readonly #deps: KeyringDependencies;
  readonly #cache = new LruCache<Aid, LocalIdentity>({ maxEntries: MAX_CACHED });
  readonly #absent = new LruCache<Aid, true>({ maxEntries: MAX_ABSENT });

  constructor(dependencies: KeyringDependencies) {
    this.#deps = dependencies;
  }

  /** Who an agent is; null where it is not here, or its key file is gone. */
  identity(aid: Aid): LocalIdentity | null {
    const cached = this.#cache.get(aid);
    if (cached !== undefined) return cached;
    if (this.#absent.get(aid) !== undefined) return null;
    const row = this.#deps.agents.get(aid);
    if (row === null) {
      this.#absent.set(aid, true);
      return null;
    }
    const pair = this.#deps.vault.get(row.keyName);
    if (pair === null) {
      this.#deps.log.error({ aid, key: row.keyName }, 'the key of this agent is missing: register it again');
      return null;
    }
    const delegation = decodeDelegation(row.delegation);
    const { publicKey } = pair;
    const identity = { aid, delegation, publicKey, sign: (message: Uint8Array) => pair.sign(message) };
    this.#cache.set(aid, identity);
    return identity;
  }

  /** The key itself, for export; null where the file is gone. */
  pair(name: string): KeyPair | null {
    return this.#deps.vault.get(name);
  }

  /**
   * Keeps a key. It comes first, the row that names it second: where that never comes, the key is
   * deleted at the next start.
   */
  put(name: string, pair: KeyPair): void {
    this.#deps.agents.expectKey(name);
    this.#deps.vault.put(name, pair);
  }

  /** Forgets what is cached of an agent whose row changed. */
  changed(aid: Aid): void {
    this.#cache.delete(aid);
    this.#absent.delete(aid);
  }

  /** Deletes a key that no row names any more; should that fail, the next start does it. */
  discard(name: string): void {
    try {
      this.#deps.vault.delete(name);
      this.#deps.agents.keyDeleted(name);
    } catch (error) {
      this.#deps.log.warn({ key: name, error }, 'a key file could not be deleted');
    }
  }

  /**
   * Deletes the keys that a crash left behind. Others that no agent has here stay: they belong to
   * another database, one that was moved away or is to be put back, and may be all that is left of it.
   */
  discardRetired(): void {
    const { agents, vault, log } = this.#deps;
    for (const name of agents.retiredKeys()) this.discard(name);
    const used = agents.keyNames();
    const foreign = vault.list().filter((name) => name.startsWith(NAME_PREFIX) && !used.has(name));
    if (foreign.length > 0)
      log.warn(
        { keys: foreign.slice(0, MAX_LISTED), count: foreign.length },
        'keys of agents that are not here are left alone',
      );
  }
}
