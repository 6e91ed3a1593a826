/** Finds the key that a note is sealed to: the newest one that its recipient has published. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { agentKey } from '../../foundation/records/keys.ts';
import { decodeEncryptionKeysPayload } from '../../foundation/records/payloads.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { NoteKeys } from './note-keys.ts';
import type { NoteLinks } from './note-links.ts';
import type { LocalIdentity, MailNetwork } from './types.ts';

/** Recipients whose keys are in memory. */
const MAX_CACHED = 4096;
/** Milliseconds for which a key is used without another look. */
const FRESH_MS = 10 * 60_000;
/** Milliseconds for a look into the record network. */
const LOOKUP_TIMEOUT_MS = 5000;

interface RecipientKeysDependencies {
  readonly network: Pick<MailNetwork, 'list'>;
  readonly keys: NoteKeys;
  readonly clock: Clock;
  identity(aid: Aid): LocalIdentity | null;
  /** Unix seconds of the newest delegation that was seen of an agent; 0 where none was. */
  newestDelegation(aid: Aid): number;
  readonly links: Pick<NoteLinks, 'askKeys'>;
}

export class RecipientKeys {
  readonly #deps: RecipientKeysDependencies;
  readonly #cache: LruCache<Aid, Uint8Array>;

  constructor(dependencies: RecipientKeysDependencies) {
    this.#deps = dependencies;
    this.#cache = new LruCache({ maxEntries: MAX_CACHED, ttlMs: FRESH_MS }, dependencies);
  }

  /**
   * The X25519 key that notes of `sender` for `recipient` are sealed to.
   * @param anew the recipient does not know the key that was found before: ask its node
   * @throws SvcError `resolve_failed` where the recipient has published none and cannot be asked; `cancelled`
   */
  async find(sender: Aid, recipient: Aid, anew: boolean, signal: AbortSignal): Promise<Uint8Array> {
    // protocol-notes.md, step 2
    if (this.#deps.identity(recipient) !== null) return this.#deps.keys.current(recipient).publicKey;
    const cached = anew ? undefined : this.#cache.get(recipient);
    if (cached !== undefined) return cached;
    const published = anew ? null : await this.#lookup(recipient, signal);
    const key = published ?? (await this.#ask(sender, recipient, signal));
    this.#cache.set(recipient, key);
    return key;
  }

  async #lookup(recipient: Aid, signal: AbortSignal): Promise<Uint8Array | null> {
    const { network } = this.#deps;
    const types = [RECORD.endpoints, RECORD.encryptionKeys];
    const found = await network.list(agentKey(recipient), types, { timeoutMs: LOOKUP_TIMEOUT_MS, signal });
    const records = found.filter((record) => record.aid === recipient);
    // A record under a replaced delegation may be the thief's: notes for the owner must not go to him.
    const seen = records.map(({ delegation }) => delegation.issuedAt);
    const newest = Math.max(this.#deps.newestDelegation(recipient), ...seen);
    const keys = records.find(
      ({ type, delegation }) => type === RECORD.encryptionKeys && delegation.issuedAt >= newest,
    );
    return keys === undefined ? null : firstKey(keys.payload);
  }

  /** What was published may not have arrived everywhere yet: the recipient itself knows. */
  async #ask(sender: Aid, recipient: Aid, signal: AbortSignal): Promise<Uint8Array> {
    let cause: unknown;
    try {
      const key = firstKey(await this.#deps.links.askKeys(sender, recipient, signal));
      if (key !== null) return key;
    } catch (error) {
      if (signal.aborted) throw error;
      cause = error;
    }
    throw new SvcError('resolve_failed', {
      message: 'This agent has no encryption key on the network, and does not answer: a note cannot be sealed for it.',
      details: { aid: recipient },
      cause,
    });
  }
}

function firstKey(payload: Uint8Array): Uint8Array | null {
  return decodeEncryptionKeysPayload(payload)?.[0]?.publicKey ?? null;
}
