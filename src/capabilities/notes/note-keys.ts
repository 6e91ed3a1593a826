/**
 * The encryption keys of local agents. A key derives from the operational key and the month, so an identity imported on
 * another machine opens its pending notes. Keys are stored when the operational key is replaced, because they cannot be
 * derived after that. See docs/protocol-notes.md, "Encryption keys".
 */
import { createHash, hkdfSync } from 'node:crypto';
import { equalBytes, fromHex, toHex } from '../../foundation/bytes.ts';
import { isUint } from '../../foundation/cbor.ts';
import { bytes, CborMap, fromBytes, list, toBytes, tuple, uint, type ValueOf } from '../../foundation/cbor-map.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { MAX_KEPT_NOTE_KEYS, X25519_PRIVATE_KEY_BYTES } from '../../foundation/domain/notes.ts';
import { MAX_UNIX_S } from '../../foundation/domain/time.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { type Aid, aidToBytes } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import { type KeyStore, MAX_SECRET_BYTES } from '../../foundation/keys/key-store.ts';
import { type SealingKey, sealingKeyOf } from '../../foundation/keys/sealed-box.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { encryptionKeyId } from '../../foundation/records/payloads.ts';
import { MAX_NOTE_TTL_S, MAX_TTL_S } from '../../foundation/records/types.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import { NoteOpener } from './letter.ts';

/** Seconds for which a key is the newest one. */
export const KEY_PERIOD_S: number = 30 * 24 * 3600;
/** Seconds for which a retired key may be needed: the lifetime of the record that published it, of a note, and a day. */
export const KEY_RETENTION_S: number = MAX_TTL_S + MAX_NOTE_TTL_S + 24 * 3600;
/** Earlier periods whose keys may still be needed. */
const EARLIER_PERIODS = 2;
/** Agents whose keys are in memory. */
const MAX_CACHED_AGENTS = 2000;
const NAME_PREFIX = 'notes-';
const SECRET_DOMAIN = new TextEncoder().encode('svcd/note-key/v1\0');

/** Files that only their owner can read. */
export type SecretVault = Pick<KeyStore, 'putSecret' | 'getSecret' | 'delete'>;

/** A key that is published. */
export interface CurrentKey {
  readonly publicKey: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** A stored private key. */
const STORED_KEYS = new CborMap(
  {
    keys: [
      'k',
      list(
        tuple({
          privateKey: bytes(X25519_PRIVATE_KEY_BYTES),
          /** Unix seconds. */
          createdAt: uint(),
          /** Since when it is no longer published, in Unix seconds. */
          retiredAt: uint(),
        }),
        MAX_SECRET_BYTES,
      ),
    ],
  },
  { version: 1 },
);
type StoredKey = ValueOf<typeof STORED_KEYS>['keys'][number];

/** A key in an export of an agent, in addition to its operational key. */
export interface ExportedNoteKey {
  readonly privateKeyHex: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

interface Ring {
  readonly stored: readonly StoredKey[];
  /** The newest key, with the operational key that it derives from; null until it is needed. */
  newest: (CurrentKey & Pick<Delegation, 'operationalKey'>) | null;
  /** By the ID of the key, in hex. */
  readonly openers: Map<string, NoteOpener>;
}

export class NoteKeys {
  readonly #vault: SecretVault;
  readonly #clock: Clock;
  readonly #identity: (aid: Aid) => LocalIdentity | null;
  readonly #rings = new LruCache<Aid, Ring>({ maxEntries: MAX_CACHED_AGENTS });

  /** @param identity the identity of a local agent; null for others */
  constructor(vault: SecretVault, clock: Clock, identity: (aid: Aid) => LocalIdentity | null) {
    this.#vault = vault;
    this.#clock = clock;
    this.#identity = identity;
  }

  /**
   * The key that notes for an agent are sealed to now. Deletes stored keys that are no longer needed.
   * @throws SvcError `not_found` if the agent is not here; `key_damaged`, `not_writable`
   */
  current(aid: Aid): CurrentKey {
    // protocol-notes.md, step 1
    const identity = this.#identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    const now = unixSeconds(this.#clock);
    const { stored } = this.#ring(aid);
    if (!stored.every((key) => isNeeded(key, now))) this.#write(aid, stored);
    const ring = this.#ring(aid);
    const createdAt = periodStart(aid, now);
    const { operationalKey } = identity.delegation;
    const { newest } = ring;
    if (newest?.createdAt === createdAt && equalBytes(newest.operationalKey, operationalKey)) return newest;
    const pair = sealingKeyOf(derive(identity, createdAt));
    remember(ring, pair);
    const current = { publicKey: pair.publicKey, createdAt, operationalKey };
    ring.newest = current;
    return current;
  }

  /**
   * Stores the keys that derive from the operational key, durably. Call it before the operational key is replaced.
   * @throws SvcError as `current`
   */
  secure(aid: Aid): void {
    const identity = this.#identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    this.#add(aid, this.#derived(identity));
  }

  /** Opens the notes that are sealed to a key; null if the agent does not have the key. */
  opener(aid: Aid, keyId: Uint8Array): NoteOpener | null {
    const ring = this.#ring(aid);
    const name = toHex(keyId);
    const known = ring.openers.get(name);
    if (known !== undefined) return known;
    const identity = this.#identity(aid);
    if (identity === null) return null;
    for (const { privateKey } of this.#derived(identity)) remember(ring, sealingKeyOf(privateKey));
    return ring.openers.get(name) ?? null;
  }

  /** The private keys of an agent, so that another node can open its notes even with another operational key. */
  export(aid: Aid): ExportedNoteKey[] {
    const identity = this.#identity(aid);
    const derived = identity === null ? [] : this.#derived(identity);
    return [...derived, ...without(this.#ring(aid).stored, derived)]
      .slice(0, MAX_KEPT_NOTE_KEYS)
      .map((key) => ({ privateKeyHex: toHex(key.privateKey), createdAt: key.createdAt }));
  }

  /**
   * Stores the private keys of an export, so that notes sealed to them can be opened here.
   * @throws SvcError `bad_key`, `too_large`
   */
  import(aid: Aid, keys: readonly ExportedNoteKey[]): void {
    if (keys.length > MAX_KEPT_NOTE_KEYS)
      throw new SvcError('too_large', { message: `An export can contain up to ${MAX_KEPT_NOTE_KEYS} note keys.` });
    const now = unixSeconds(this.#clock);
    const given = keys.map(({ privateKeyHex, createdAt }) => {
      const privateKey = fromHex(privateKeyHex.trim());
      if (privateKey === null || privateKey.length !== X25519_PRIVATE_KEY_BYTES || !isUint(createdAt, MAX_UNIX_S))
        throw new SvcError('bad_key', { message: 'A note key is 32 bytes, 64 hex characters, with its time.' });
      return { privateKey, createdAt, retiredAt: now };
    });
    this.#add(aid, given);
  }

  /** Deletes the keys of a deleted agent. */
  forget(aid: Aid): void {
    this.#rings.delete(aid);
    this.#vault.delete(nameOf(aid));
  }

  /** The keys of this period and the earlier ones, as if they were replaced now. */
  #derived(identity: LocalIdentity): StoredKey[] {
    const now = unixSeconds(this.#clock);
    const start = periodStart(identity.aid, now);
    const starts = Array.from({ length: 1 + EARLIER_PERIODS }, (_, i) => start - i * KEY_PERIOD_S);
    return starts
      .filter((createdAt) => createdAt >= 0)
      .map((createdAt) => ({
        privateKey: derive(identity, createdAt),
        createdAt,
        retiredAt: Math.min(now, createdAt + KEY_PERIOD_S),
      }));
  }

  #ring(aid: Aid): Ring {
    const cached = this.#rings.get(aid);
    if (cached !== undefined) return cached;
    const secret = this.#vault.getSecret(nameOf(aid));
    return this.#cache(aid, secret === null ? [] : decodeStored(secret));
  }

  #cache(aid: Aid, stored: readonly StoredKey[]): Ring {
    const ring: Ring = { stored, newest: null, openers: new Map() };
    for (const { privateKey } of stored) remember(ring, sealingKeyOf(privateKey));
    this.#rings.set(aid, ring);
    return ring;
  }

  #add(aid: Aid, keys: readonly StoredKey[]): void {
    const { stored } = this.#ring(aid);
    const added = without(keys, stored);
    if (added.length > 0) this.#write(aid, [...stored, ...added]);
  }

  /** If there are too many keys, those retired first are dropped. */
  #write(aid: Aid, keys: readonly StoredKey[]): void {
    const now = unixSeconds(this.#clock);
    const needed = keys.filter((key) => isNeeded(key, now)).sort((a, b) => b.retiredAt - a.retiredAt);
    const stored = needed.slice(0, MAX_KEPT_NOTE_KEYS);
    this.#vault.putSecret(nameOf(aid), toBytes(STORED_KEYS, { keys: stored }));
    this.#cache(aid, stored);
  }
}

function without<T extends { readonly privateKey: Uint8Array }>(keys: readonly T[], others: readonly T[]): T[] {
  return keys.filter(({ privateKey }) => !others.some((other) => equalBytes(other.privateKey, privateKey)));
}

function isNeeded({ retiredAt }: StoredKey, now: number): boolean {
  return retiredAt + KEY_RETENTION_S >= now;
}

function remember(ring: Ring, key: SealingKey): void {
  ring.openers.set(toHex(encryptionKeyId(key.publicKey)), new NoteOpener(key));
}

/** The start of an agent's current period in Unix seconds. It differs between agents, so that not all keys change at the same time. */
function periodStart(aid: Aid, now: number): number {
  const offset = createHash('sha256').update(aidToBytes(aid)).digest().readUInt32BE(0) % KEY_PERIOD_S;
  return Math.max(0, Math.floor((now + offset) / KEY_PERIOD_S) * KEY_PERIOD_S - offset);
}

/** Ed25519 signatures are deterministic, so a signature that never leaves this function is a secret. */
function derive(identity: LocalIdentity, createdAt: number): Uint8Array {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(Math.max(0, createdAt)));
  const secret = identity.sign(Buffer.concat([SECRET_DOMAIN, aidToBytes(identity.aid), time]));
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), SECRET_DOMAIN, X25519_PRIVATE_KEY_BYTES));
}

function nameOf(aid: Aid): string {
  return NAME_PREFIX + createHash('sha256').update(aidToBytes(aid)).digest('hex').slice(0, 32);
}

function decodeStored(secret: Uint8Array): readonly StoredKey[] {
  const stored = fromBytes(STORED_KEYS, secret, MAX_SECRET_BYTES);
  if (stored === null) throw new SvcError('key_damaged', { message: 'The note keys of an agent are damaged.' });
  return stored.keys;
}
