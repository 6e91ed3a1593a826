/**
 * The secret keys of this node and its agents: one file each, in a directory that only its owner
 * may read, optionally sealed with a passphrase. A file is read when its key is asked for, so a
 * node with 10,000 agents starts as fast as one with two. Not cached here: who uses keys, keeps them.
 */
import { fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { KeyPair } from '../identity/keys.ts';
import { isObject, readJson } from '../json.ts';
import type { Log } from '../log.ts';
import type { Passphrase } from './passphrase.ts';
import { damaged, PrivateDirectory } from './private-directory.ts';
import { Seal, type SealFile } from './seal.ts';

const SEAL_FILE = 'seal.json';
const SUFFIX = '.key';
/** What an interrupted write leaves behind: a secret that nobody would look for. */
const LEFTOVERS: readonly string[] = [`${SUFFIX}.tmp`, `${SEAL_FILE}.tmp`];
const VERSION = 1;
/** A name is also a file name, on every file system: no dot, no slash, no blank. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
/** Longest secret, bytes. */
export const MAX_SECRET_BYTES = 4096;

/** The name of the node's own key. */
export const NODE_KEY = 'node';

/** The file of the key of that name. */
export function keyFileName(name: string): string {
  return `${name}${SUFFIX}`;
}

/** True for names of files that a key store writes. */
export function isKeyFile(file: string): boolean {
  return file === SEAL_FILE || (file.endsWith(SUFFIX) && NAME.test(file.slice(0, -SUFFIX.length)));
}

interface KeyStoreOptions {
  /** Made where it is missing. */
  readonly directory: string;
  /** Seals an open store for good, and opens a sealed one. */
  readonly passphrase?: Passphrase;
}

/** What seal.json holds. `complete` is false while files from before the seal may still be open. */
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
   * Opens a store. With a passphrase it takes a few tenths of a second (scrypt), once.
   * @throws SvcError `key_locked` where it is sealed and the passphrase is missing or wrong;
   *   `key_exposed`, `key_damaged`, `not_writable` from its directory
   */
  static async open(options: KeyStoreOptions, dependencies: { readonly log: Log }): Promise<KeyStore> {
    const { passphrase } = options;
    if (passphrase?.text === '')
      throw new SvcError('key_locked', { message: 'The passphrase of the key store is empty.' });
    const directory = PrivateDirectory.open(options.directory, dependencies);
    for (const file of directory.list()) if (LEFTOVERS.some((end) => file.endsWith(end))) directory.delete(file);
    const text = directory.read(SEAL_FILE);
    if (passphrase === undefined) {
      if (text !== null) throw new SvcError('key_locked');
      return new KeyStore(directory, null);
    }
    if (text !== null) {
      const state = readSealState(text);
      const store = new KeyStore(directory, await Seal.open(state, passphrase));
      if (!state.complete) store.#closeOpenFiles(state);
      return store;
    }
    const { seal, file } = await Seal.create(passphrase);
    const state: SealState = { svcd_seal: VERSION, complete: false, ...file };
    directory.write(SEAL_FILE, JSON.stringify(state));
    const store = new KeyStore(directory, seal);
    store.#closeOpenFiles(state);
    dependencies.log.info({ keys: store.list().length }, 'the key store is sealed now');
    return store;
  }

  /** Keeps a key pair, durably; one of the same name is replaced. @throws SvcError `not_writable` */
  put(name: string, pair: KeyPair): void {
    this.putSecret(name, pair.seed);
  }

  /** The key pair of a name; null where there is none. @throws SvcError `key_damaged`, `key_exposed` */
  get(name: string): KeyPair | null {
    const seed = this.getSecret(name);
    return seed === null ? null : KeyPair.fromSeed(seed);
  }

  /** Keeps secret bytes (at most 4 KiB), durably; others of the same name are replaced. @throws SvcError `not_writable` */
  putSecret(name: string, secret: Uint8Array): void {
    this.#directory.write(fileOf(name), this.#textOf(name, secret));
  }

  /**
   * As `putSecret` for what can be made again: nobody waits for the disk, and many that come together cost it less. They
   * are sure after `flush`, or some moments.
   */
  putSecretDeferred(name: string, secret: Uint8Array): void {
    this.#directory.writeDeferred(fileOf(name), this.#textOf(name, secret));
  }

  /** Makes sure what was put soon: before that goes from which it could be made again. @throws SvcError `not_writable` */
  flush(): void {
    this.#directory.flush();
  }

  #textOf(name: string, secret: Uint8Array): string {
    if (secret.length > MAX_SECRET_BYTES) throw new RangeError(`a secret of ${secret.length} bytes is too long`);
    const content = this.#seal === null ? { secret: toHex(secret) } : { sealed: toHex(this.#seal.close(name, secret)) };
    return JSON.stringify({ svcd_key: VERSION, name, ...content });
  }

  /** The secret bytes of a name; null where there are none. @throws SvcError `key_damaged`, `key_exposed` */
  getSecret(name: string): Uint8Array | null {
    const file = fileOf(name);
    const text = this.#directory.read(file);
    if (text === null) return null;
    const content = readObject(text);
    if (content['svcd_key'] !== VERSION || content['name'] !== name) throw damaged(file, 'is not the key of that name');
    const { sealed, secret } = content;
    if (this.#seal === null) {
      const bytes = typeof secret === 'string' ? fromHex(secret) : null;
      if (bytes === null) throw damaged(file, 'holds no readable key');
      return bytes;
    }
    // A key that lies here unsealed was put here by someone without the passphrase.
    const bytes = typeof sealed === 'string' ? this.#seal.open(name, fromHex(sealed) ?? new Uint8Array()) : null;
    if (bytes === null) throw damaged(file, 'does not hold a key under the seal of this store');
    return bytes;
  }

  /** Deletes a key durably; nothing happens where there is none. @throws SvcError `not_writable` */
  delete(name: string): void {
    this.#directory.delete(fileOf(name));
  }

  /** The names of all keys, sorted. */
  list(): string[] {
    const names = this.#directory.list().map((file) => (file.endsWith(SUFFIX) ? file.slice(0, -SUFFIX.length) : ''));
    return names.filter((name) => NAME.test(name)).sort();
  }

  /** Seals the files from before the seal. Stopped half-way, it goes on at the next start. */
  #closeOpenFiles(state: SealState): void {
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

/** @throws RangeError where the name could leave the directory: names come from our own code */
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
    throw damaged(SEAL_FILE, 'is no seal of a key store');
  return { svcd_seal, complete: complete === true, salt, wrapped };
}
