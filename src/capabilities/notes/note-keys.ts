/**
 * The encryption keys of local agents. A key follows from the operational key and the month, so
 * that an identity which is imported on another machine opens the notes that wait for it; it is
 * kept as well, so that they stay readable when the operational key changes. See
 * docs/notes-and-chat.md, "Keys".
 */
import { createHash, hkdfSync } from 'node:crypto';
import { equalBytes, fromHex, toHex } from '../../foundation/bytes.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
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
import { NoteOpener } from './sealing.ts';
import type { LocalIdentity } from './types.ts';

/** How long a key is the newest one, seconds. */
export const KEY_PERIOD_S: number = 30 * 24 * 3600;
/** How long a key that is no longer the newest may still be needed, seconds: the life of the record that named it, of a note, and a day. */
export const KEY_RETENTION_S: number = MAX_TTL_S + MAX_NOTE_TTL_S + 24 * 3600;
/** Periods before the present one whose keys may still be needed. */
const EARLIER_PERIODS = 2;
/** Agents whose keys are in memory. */
const MAX_CACHED_AGENTS = 2000;
const NAME_PREFIX = 'notes-';
const SECRET_DOMAIN = new TextEncoder().encode('svcd/note-key/v1\0');
const FORMAT = 1;

/** Where secrets are kept: files that only their owner reads. */
export type SecretVault = Pick<KeyStore, 'putSecret' | 'putSecretDeferred' | 'flush' | 'getSecret' | 'delete'>;

export interface NoteKeysDependencies {
  readonly vault: SecretVault;
  readonly clock: Clock;
  /** The identity of a local agent; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
}

/** A key that is published. */
export interface CurrentKey {
  readonly publicKey: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
}

/** A private key as it is kept. Unix seconds. */
interface KeptKey extends Omit<CurrentKey, 'publicKey'> {
  readonly privateKey: Uint8Array;
  /** Since when it is no longer the newest; 0 while it is. */
  readonly retiredAt: number;
}

/** What an export of an agent carries beside its operational key. */
export interface ExportedNoteKey {
  readonly privateKeyHex: string;
  /** Unix seconds. */
  readonly createdAt: number;
}

interface Ring {
  readonly kept: readonly KeptKey[];
  /** The newest key, with the operational key that it follows from: a publication asks for it twice. Null until then. */
  newest: (CurrentKey & Pick<Delegation, 'operationalKey'>) | null;
  /** By the id of the key, in hex. */
  readonly openers: Map<string, NoteOpener>;
}

export class NoteKeys {
  readonly #deps: NoteKeysDependencies;
  readonly #rings = new LruCache<Aid, Ring>({ maxEntries: MAX_CACHED_AGENTS });

  constructor(dependencies: NoteKeysDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The key that notes for an agent are sealed to now. Nobody waits until it is kept: as long as the operational key is
   * the same, it follows from that (see `secure`). Keys that are no longer needed are deleted.
   * @throws SvcError `not_found` where the agent is not here; `key_damaged`, `not_writable`
   */
  current(aid: Aid): CurrentKey {
    // protocol-notes.md, step 1
    const identity = this.#deps.identity(aid);
    if (identity === null) throw noSuchAgent(aid);
    const now = unixSeconds(this.#deps.clock);
    const createdAt = periodStart(aid, now);
    const { operationalKey } = identity.delegation;
    let ring = this.#ring(aid);
    const areNeeded = ring.kept.every((key) => isNeeded(key, now));
    if (areNeeded && ring.newest?.createdAt === createdAt && equalBytes(ring.newest.operationalKey, operationalKey))
      return ring.newest;
    const newest = ring.kept.find((key) => key.retiredAt === 0);
    const privateKey = derive(identity, createdAt);
    const pair = sealingKeyOf(privateKey);
    if (newest === undefined || !equalBytes(newest.privateKey, privateKey)) {
      const retired = ring.kept.map((key) => (key.retiredAt === 0 ? { ...key, retiredAt: now } : key));
      ring = this.#keep(aid, [{ privateKey, createdAt, retiredAt: 0 }, ...retired], 'soon', pair);
    } else if (!areNeeded) ring = this.#keep(aid, ring.kept, 'soon', pair);
    ring.newest = { publicKey: pair.publicKey, createdAt, operationalKey };
    return ring.newest;
  }

  /**
   * Keeps the key that was published, durably: to be called before the operational key changes from which it follows.
   * @throws SvcError as `current`
   */
  secure(aid: Aid): void {
    this.current(aid);
    this.#deps.vault.flush();
  }

  /** What opens the notes that are sealed to a key; null where it is none of this agent's. */
  opener(aid: Aid, keyId: Uint8Array): NoteOpener | null {
    const ring = this.#ring(aid);
    const name = toHex(keyId);
    const known = ring.openers.get(name);
    if (known !== undefined) return known;
    const identity = this.#deps.identity(aid);
    if (identity === null) return null;
    const start = periodStart(aid, unixSeconds(this.#deps.clock));
    for (let i = 0; i <= EARLIER_PERIODS; i++) remember(ring, sealingKeyOf(derive(identity, start - i * KEY_PERIOD_S)));
    return ring.openers.get(name) ?? null;
  }

  /** The private keys that an export carries: those that do not follow from the operational key as well. */
  export(aid: Aid): ExportedNoteKey[] {
    return this.#ring(aid).kept.map((key) => ({ privateKeyHex: toHex(key.privateKey), createdAt: key.createdAt }));
  }

  /**
   * Takes in the keys of an export, so that notes sealed to them can be opened here.
   * @throws SvcError `bad_key`, `too_large`
   */
  import(aid: Aid, keys: readonly ExportedNoteKey[]): void {
    if (keys.length > MAX_KEPT_NOTE_KEYS)
      throw new SvcError('too_large', { message: `An export carries at most ${MAX_KEPT_NOTE_KEYS} note keys.` });
    const now = unixSeconds(this.#deps.clock);
    const given = keys.map(({ privateKeyHex, createdAt }) => {
      const privateKey = fromHex(privateKeyHex.trim());
      if (privateKey === null || privateKey.length !== X25519_PRIVATE_KEY_BYTES || !isUint(createdAt, MAX_UNIX_S))
        throw new SvcError('bad_key', { message: 'A note key is 32 bytes, 64 hex characters, with its time.' });
      return { privateKey, createdAt, retiredAt: now };
    });
    const { kept } = this.#ring(aid);
    const fresh = given.filter((key) => !kept.some((own) => equalBytes(own.privateKey, key.privateKey)));
    if (fresh.length > 0) this.#keep(aid, [...kept, ...fresh], 'now');
  }

  /** Deletes the keys of an agent that is no longer here. */
  forget(aid: Aid): void {
    this.#rings.delete(aid);
    this.#deps.vault.delete(nameOf(aid));
  }

  #ring(aid: Aid): Ring {
    const cached = this.#rings.get(aid);
    if (cached !== undefined) return cached;
    const secret = this.#deps.vault.getSecret(nameOf(aid));
    return this.#hold(aid, secret === null ? [] : decodeKept(secret));
  }

  /** @param known the pair of one of them: working it out takes longer than the rest */
  #hold(aid: Aid, kept: readonly KeptKey[], known?: SealingKey): Ring {
    const ring: Ring = { kept, newest: null, openers: new Map() };
    for (const { privateKey } of kept)
      remember(ring, privateKey === known?.privateKey ? known : sealingKeyOf(privateKey));
    this.#rings.set(aid, ring);
    return ring;
  }

  #keep(aid: Aid, keys: readonly KeptKey[], when: 'now' | 'soon', known?: SealingKey): Ring {
    const now = unixSeconds(this.#deps.clock);
    const needed = keys.filter((key) => isNeeded(key, now)).slice(0, MAX_KEPT_NOTE_KEYS);
    const { vault } = this.#deps;
    if (when === 'now') vault.putSecret(nameOf(aid), encodeKept(needed));
    else vault.putSecretDeferred(nameOf(aid), encodeKept(needed));
    return this.#hold(aid, needed, known);
  }
}

function isNeeded({ retiredAt }: KeptKey, now: number): boolean {
  return retiredAt === 0 || retiredAt + KEY_RETENTION_S >= now;
}

function remember(ring: Ring, key: SealingKey): void {
  ring.openers.set(toHex(encryptionKeyId(key.publicKey)), new NoteOpener(key));
}

/** The start of an agent's present period, Unix seconds: not all agents change their key at once. */
function periodStart(aid: Aid, now: number): number {
  const offset = createHash('sha256').update(aidToBytes(aid)).digest().readUInt32BE(0) % KEY_PERIOD_S;
  return Math.max(0, Math.floor((now + offset) / KEY_PERIOD_S) * KEY_PERIOD_S - offset);
}

/**
 * A private key that nobody else can make: Ed25519 signatures are deterministic, so a signature
 * that never leaves this function is a secret that the operational key determines.
 */
function derive(identity: LocalIdentity, createdAt: number): Uint8Array {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(Math.max(0, createdAt)));
  const secret = identity.sign(Buffer.concat([SECRET_DOMAIN, aidToBytes(identity.aid), time]));
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), SECRET_DOMAIN, X25519_PRIVATE_KEY_BYTES));
}

function nameOf(aid: Aid): string {
  return NAME_PREFIX + createHash('sha256').update(aidToBytes(aid)).digest('hex').slice(0, 32);
}

function encodeKept(keys: readonly KeptKey[]): Uint8Array {
  const list: CborValue[] = keys.map((key) => [key.privateKey, key.createdAt, key.retiredAt]);
  return encodeCbor({ v: FORMAT, k: list });
}

function decodeKept(bytes: Uint8Array): KeptKey[] {
  const damaged = (): SvcError => new SvcError('key_damaged', { message: 'The note keys of an agent are damaged.' });
  let map: Readonly<Record<string, unknown>> | null;
  try {
    map = asMap(decodeCbor(bytes, MAX_SECRET_BYTES), ['v', 'k']);
  } catch {
    throw damaged();
  }
  if (map === null || map['v'] !== FORMAT || !Array.isArray(map['k'])) throw damaged();
  return map['k'].map((value: unknown) => {
    const [privateKey, createdAt, retiredAt]: unknown[] = Array.isArray(value) ? value : [];
    if (!isBytes(privateKey, X25519_PRIVATE_KEY_BYTES) || !isUint(createdAt) || !isUint(retiredAt)) throw damaged();
    return { privateKey, createdAt, retiredAt };
  });
}
