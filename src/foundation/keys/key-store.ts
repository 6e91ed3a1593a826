/**
 * The secret keys of this node and its agents: one file per key in a directory that only its owner can read, optionally
 * sealed with a passphrase. Keys are read on demand, so a node with 10,000 agents starts as fast as one with two. The
 * store does not cache keys; callers do.
 */

import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { KeyPair } from '../identity/keys.ts';
import { isObject, readJson } from '../json.ts';
import type { Log } from '../log.ts';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';
import { deriveKey, PASSPHRASE_SALT_BYTES, type Passphrase } from './passphrase.ts';
import { damaged, PrivateDirectory } from './private-directory.ts';

// Seals secrets with a passphrase. scrypt derives a key from the passphrase, which wraps a random key. The random key
// encrypts each secret (AES-256-GCM), bound to its name. Only the small seal file depends on the passphrase, and
// opening it verifies the passphrase.

const SEAL_PURPOSE = 'svcd/seal/v1\0';
const SECRET_PURPOSE = 'svcd/sealed-key/v1\0';

/** Content of the seal file, in hex. */
interface SealFile {
  readonly salt: string;
  readonly wrapped: string;
}

/** Returns nonce, ciphertext and tag. */
function wrapSecret(key: KeyObject, purpose: string, secret: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  return Buffer.concat([nonce, encrypt(key, nonce, Buffer.from(purpose), secret)]);
}

/** Null if the key, the purpose or the bytes do not match `wrapSecret`. */
function unwrapSecret(key: KeyObject, purpose: string, wrapped: Uint8Array): Uint8Array | null {
  const nonce = wrapped.subarray(0, NONCE_BYTES);
  const secret = decrypt(key, nonce, Buffer.from(purpose), wrapped.subarray(NONCE_BYTES));
  return secret === null ? null : new Uint8Array(secret);
}

class Seal {
  readonly #key: KeyObject;

  private constructor(key: KeyObject) {
    this.#key = key;
  }

  /** Creates a seal, and the file that opens it again with the passphrase. */
  static async create(passphrase: Passphrase): Promise<{ readonly seal: Seal; readonly file: SealFile }> {
    const salt = randomBytes(PASSPHRASE_SALT_BYTES);
    const key = randomBytes(CIPHER_KEY_BYTES);
    const wrapped = wrapSecret(await deriveKey(passphrase, salt), SEAL_PURPOSE, key);
    return { seal: new Seal(createSecretKey(key)), file: { salt: toHex(salt), wrapped: toHex(wrapped) } };
  }

  /** @throws SvcError `key_locked` if the passphrase is wrong or the file is damaged, which cannot be distinguished */
  static async open(file: SealFile, passphrase: Passphrase): Promise<Seal> {
    const salt = fromHex(file.salt) ?? new Uint8Array();
    const key = unwrapSecret(
      await deriveKey(passphrase, salt),
      SEAL_PURPOSE,
      fromHex(file.wrapped) ?? new Uint8Array(),
    );
    if (key === null) throw new SvcError('key_locked', { message: 'The passphrase does not open the key store.' });
    return new Seal(createSecretKey(key));
  }

  /** Encrypts a secret, bound to its name. */
  encrypt(name: string, secret: Uint8Array): Uint8Array {
    return wrapSecret(this.#key, SECRET_PURPOSE + name, secret);
  }

  /** Decrypts the secret of a name; null if it was not sealed for this name. */
  decrypt(name: string, sealed: Uint8Array): Uint8Array | null {
    return unwrapSecret(this.#key, SECRET_PURPOSE + name, sealed);
  }
}

const SEAL_FILE = 'seal.json';
const SUFFIX = '.key';
/** Files that an interrupted write leaves behind, which contain secrets. */
const TEMPORARY_FILES: readonly string[] = [`${SUFFIX}.tmp`, `${SEAL_FILE}.tmp`];
const VERSION = 1;
/** A key name is also a file name on every file system: no dots, slashes or blanks. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
/** Maximum size of a secret, in bytes. */
export const MAX_SECRET_BYTES = 4096;

/** Name of the node's own key. */
export const NODE_KEY = 'node';

/** The file name of a key. */
export function keyFileName(name: string): string {
  return `${name}${SUFFIX}`;
}

/** True for file names that a key store writes. */
export function isKeyFile(file: string): boolean {
  return file === SEAL_FILE || (file.endsWith(SUFFIX) && NAME.test(file.slice(0, -SUFFIX.length)));
}

interface KeyStoreOptions {
  /** Created if missing. */
  readonly directory: string;
  /** Seals an unsealed store permanently, and opens a sealed one. */
  readonly passphrase?: Passphrase;
}

/** Content of seal.json. While `complete` is false, older files may still be unsealed. */
interface SealState extends SealFile {
  readonly svcd_seal: number;
  readonly complete: boolean;
}

export class KeyStore {
  readonly #directory: PrivateDirectory;
  readonly #seal: Seal | null;

  private constructor(directory: PrivateDirectory, seal: Seal | null) {
    this.#directory = directory;
    this.#seal = seal;
  }

  /**
   * Opens a store. With a passphrase this takes a few tenths of a second (scrypt).
   * @throws SvcError `key_locked` if it is sealed and the passphrase is missing or wrong; `key_exposed`, `key_damaged`,
   *   `not_writable` from its directory
   */
  static async open(options: KeyStoreOptions, dependencies: { readonly log: Log }): Promise<KeyStore> {
    const { passphrase } = options;
    if (passphrase?.text === '')
      throw new SvcError('key_locked', { message: 'The passphrase of the key store is empty.' });
    const directory = PrivateDirectory.open(options.directory, dependencies);
    for (const file of directory.list()) if (TEMPORARY_FILES.some((end) => file.endsWith(end))) directory.delete(file);
    const text = directory.read(SEAL_FILE);
    if (passphrase === undefined) {
      if (text !== null) throw new SvcError('key_locked');
      return new KeyStore(directory, null);
    }
    if (text !== null) {
      const state = readSealState(text);
      const store = new KeyStore(directory, await Seal.open(state, passphrase));
      if (!state.complete) store.#sealPlainFiles(state);
      return store;
    }
    const { seal, file } = await Seal.create(passphrase);
    const state: SealState = { svcd_seal: VERSION, complete: false, ...file };
    directory.write(SEAL_FILE, JSON.stringify(state));
    const store = new KeyStore(directory, seal);
    store.#sealPlainFiles(state);
    dependencies.log.info({ keys: store.list().length }, 'the key store is sealed now');
    return store;
  }

  /** Stores a key pair durably and replaces one of the same name. @throws SvcError `not_writable` */
  put(name: string, pair: KeyPair): void {
    this.putSecret(name, pair.seed);
  }

  /** The key pair of a name; null if there is none. @throws SvcError `key_damaged`, `key_exposed` */
  get(name: string): KeyPair | null {
    const seed = this.getSecret(name);
    return seed === null ? null : KeyPair.fromSeed(seed);
  }

  /**
   * Stores secret bytes (at most 4 KiB) durably and replaces older ones. @throws SvcError `not_writable`
   */
  putSecret(name: string, secret: Uint8Array): void {
    this.#directory.write(fileOf(name), this.#textOf(name, secret));
  }

  #textOf(name: string, secret: Uint8Array): string {
    if (secret.length > MAX_SECRET_BYTES) throw new RangeError(`a secret of ${secret.length} bytes is too long`);
    const content =
      this.#seal === null ? { secret: toHex(secret) } : { sealed: toHex(this.#seal.encrypt(name, secret)) };
    return JSON.stringify({ svcd_key: VERSION, name, ...content });
  }

  /** The secret bytes of a name; null if there are none. @throws SvcError `key_damaged`, `key_exposed` */
  getSecret(name: string): Uint8Array | null {
    const file = fileOf(name);
    const text = this.#directory.read(file);
    if (text === null) return null;
    const content = readObject(text);
    if (content['svcd_key'] !== VERSION || content['name'] !== name) throw damaged(file, 'is not the key of this name');
    const { sealed, secret } = content;
    if (this.#seal === null) {
      const bytes = typeof secret === 'string' ? fromHex(secret) : null;
      if (bytes === null) throw damaged(file, 'does not contain a valid key');
      return bytes;
    }
    // An unsealed key in a sealed store was put there without the passphrase.
    const bytes = typeof sealed === 'string' ? this.#seal.decrypt(name, fromHex(sealed) ?? new Uint8Array()) : null;
    if (bytes === null) throw damaged(file, 'does not contain a key sealed by this store');
    return bytes;
  }

  /** Deletes a key durably, if it exists. @throws SvcError `not_writable` */
  delete(name: string): void {
    this.#directory.delete(fileOf(name));
  }

  /** The names of all keys, sorted. */
  list(): string[] {
    const names = this.#directory.list().map((file) => (file.endsWith(SUFFIX) ? file.slice(0, -SUFFIX.length) : ''));
    return names.filter((name) => NAME.test(name)).sort();
  }

  /** Seals the files written before the seal. After an interruption it continues at the next start. */
  #sealPlainFiles(state: SealState): void {
    const open = new KeyStore(this.#directory, null);
    for (const name of this.list()) {
      const content = readObject(this.#directory.read(fileOf(name)) ?? '');
      if (content['sealed'] !== undefined) continue;
      const secret = open.getSecret(name);
      if (secret !== null) this.putSecret(name, secret);
    }
    this.#directory.write(SEAL_FILE, JSON.stringify({ ...state, complete: true }));
  }
}

/** @throws RangeError if the name could leave the directory; names come from our own code */
function fileOf(name: string): string {
  if (!NAME.test(name)) throw new RangeError('not a name of a key');
  return keyFileName(name);
}

function readObject(text: string): Readonly<Record<string, unknown>> {
  const value = readJson(text);
  return isObject(value) ? value : {};
}

function readSealState(text: string): SealState {
  const { svcd_seal, complete, salt, wrapped } = readObject(text);
  if (svcd_seal !== VERSION || typeof salt !== 'string' || typeof wrapped !== 'string')
    throw damaged(SEAL_FILE, 'is not the seal of a key store');
  return { svcd_seal, complete: complete === true, salt, wrapped };
}
