/** The operational keys of local agents: loaded on first use, cached up to a limit. */
import { createHash } from 'node:crypto';
import { fromHex } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import {
  type Delegation,
  decodeDelegation,
  delegates,
  MAX_DELEGATION_BYTES,
} from '../../foundation/identity/delegation.ts';
import { verifyDelegation } from '../../foundation/identity/delegation-verifier.ts';
import { type KeyPair, parsePrivateKey } from '../../foundation/identity/keys.ts';
import type { Log } from '../../foundation/log.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { KeyVault } from './types.ts';

const MAX_CACHED = 2000;
/** AIDs cached as not local. Each new link checks whether the remote agent is local. */
const MAX_ABSENT = 8192;
/** Prefix of the agents' keys in the vault. Other components use other names. */
const NAME_PREFIX = 'agent-';
/** Maximum number of unknown key names in a log line. */
const MAX_LISTED = 10;

/** The vault name of an agent's key. It depends on agent and key, so a rotation never overwrites a key. */
export function keyName(aid: Aid, operationalKey: Uint8Array): string {
  const digest = createHash('sha256').update(aidToBytes(aid)).update(operationalKey).digest('hex');
  return `${NAME_PREFIX}${digest.slice(0, 32)}`;
}

export class Keyring {
  readonly #agents: AgentStore;
  readonly #vault: KeyVault;
  readonly #log: Log;
  readonly #cache = new LruCache<Aid, LocalIdentity>({ maxEntries: MAX_CACHED });
  readonly #absent = new LruCache<Aid, true>({ maxEntries: MAX_ABSENT });

  constructor(agents: AgentStore, vault: KeyVault, log: Log) {
    this.#agents = agents;
    this.#vault = vault;
    this.#log = log;
  }

  /** The identity of a local agent. Null if the agent is not registered here or its key file is missing. */
  identity(aid: Aid): LocalIdentity | null {
    const cached = this.#cache.get(aid);
    if (cached !== undefined) return cached;
    if (this.#absent.get(aid) !== undefined) return null;
    const row = this.#agents.get(aid);
    if (row === null) {
      this.#absent.set(aid, true);
      return null;
    }
    const pair = this.#vault.get(row.keyName);
    if (pair === null) {
      this.#log.error({ aid, key: row.keyName }, 'key file of the agent is missing; register the agent again');
      return null;
    }
    const delegation = decodeDelegation(row.delegation);
    const { publicKey } = pair;
    const identity = { aid, delegation, publicKey, sign: (message: Uint8Array) => pair.sign(message) };
    this.#cache.set(aid, identity);
    return identity;
  }

  /** The key pair itself, for export. Null if the file is missing. */
  pair(name: string): KeyPair | null {
    return this.#vault.get(name);
  }

  /** Stores a key before the row that names it. If that row is never written, the next start deletes the key. */
  put(name: string, pair: KeyPair): void {
    this.#agents.expectKey(name);
    this.#vault.put(name, pair);
  }

  /** Invalidates the cache of an agent after its row changed. */
  invalidate(aid: Aid): void {
    this.#cache.delete(aid);
    this.#absent.delete(aid);
  }

  /** Deletes a key that no row names. If this fails, the next start retries it. */
  discard(name: string): void {
    try {
      this.#vault.delete(name);
      this.#agents.removeRetiredKey(name);
    } catch (error) {
      this.#log.warn({ key: name, error }, 'failed to delete a key file');
    }
  }

  /**
   * Deletes keys that a crash left behind. Keys of unknown agents are kept: they belong to another database, for
   * example one that was moved away or will be restored, and may be the only copy.
   */
  deleteUnusedKeys(): void {
    for (const name of this.#agents.retiredKeys()) this.discard(name);
    const used = this.#agents.keyNames();
    const foreign = this.#vault.list().filter((name) => name.startsWith(NAME_PREFIX) && !used.has(name));
    if (foreign.length > 0)
      this.#log.warn(
        { keys: foreign.slice(0, MAX_LISTED), count: foreign.length },
        'kept keys of agents that are not registered here',
      );
  }
}

// Parses and verifies the credentials of a registration.

/** Maximum length of the hex text, in characters: a proof, `0x` and some whitespace. */
const MAX_PROOF_TEXT = 2 * MAX_DELEGATION_BYTES + 16;

export interface Credentials {
  readonly pair: KeyPair;
  readonly delegation: Delegation;
}

/**
 * Parses an operational key and its delegation proof, and verifies both.
 * @param now Unix seconds
 * @throws SvcError `bad_key`, `bad_delegation`
 */
export function readCredentials(privateKeyHex: string, proofHex: string, now: number): Credentials {
  const pair = parsePrivateKey(privateKeyHex);
  const proof = proofHex.length > MAX_PROOF_TEXT ? null : fromHex(proofHex.trim());
  if (proof === null)
    throw new SvcError('bad_delegation', {
      message: 'The delegation proof is not valid hex or is too long.',
    });
  const delegation = decodeDelegation(proof);
  verifyDelegation(delegation, now);
  if (!delegates(delegation, pair.publicKey))
    throw new SvcError('bad_delegation', { message: 'The delegation proof is for another operational key.' });
  return { pair, delegation };
}
