/**
 * Sealing of secrets with a passphrase: scrypt makes a key of the passphrase, that key wraps a
 * random one, and the random one encrypts each secret (AES-256-GCM) under its own name. Only the
 * small seal file depends on the passphrase, and whether it opens says whether the passphrase is right.
 */
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';
import { deriveKey, PASSPHRASE_SALT_BYTES, type Passphrase } from './passphrase.ts';

const SEAL_PURPOSE = 'svcd/seal/v1\0';
const SECRET_PURPOSE = 'svcd/sealed-key/v1\0';

/** What the seal file holds, in hex. */
export interface SealFile {
  readonly salt: string;
  readonly wrapped: string;
}

/** nonce, ciphertext, tag. */
function wrap(key: KeyObject, purpose: string, secret: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  return Buffer.concat([nonce, encrypt(key, nonce, Buffer.from(purpose), secret)]);
}

/** Null where the key, the purpose or the bytes are not those of `wrap`. */
function unwrap(key: KeyObject, purpose: string, wrapped: Uint8Array): Uint8Array | null {
  const nonce = wrapped.subarray(0, NONCE_BYTES);
  const secret = decrypt(key, nonce, Buffer.from(purpose), wrapped.subarray(NONCE_BYTES));
  return secret === null ? null : new Uint8Array(secret);
}

export class Seal {
  readonly #key: KeyObject;

  private constructor(key: KeyObject) {
    this.#key = key;
  }

  /** A fresh seal, and the file that opens it again with the passphrase. */
  static async create(passphrase: Passphrase): Promise<{ readonly seal: Seal; readonly file: SealFile }> {
    const salt = randomBytes(PASSPHRASE_SALT_BYTES);
    const key = randomBytes(CIPHER_KEY_BYTES);
    const wrapped = wrap(await deriveKey(passphrase, salt), SEAL_PURPOSE, key);
    return { seal: new Seal(createSecretKey(key)), file: { salt: toHex(salt), wrapped: toHex(wrapped) } };
  }

  /** @throws SvcError `key_locked` where the passphrase is wrong, or the file is damaged, which looks the same */
  static async open(file: SealFile, passphrase: Passphrase): Promise<Seal> {
    const salt = fromHex(file.salt) ?? new Uint8Array();
    const key = unwrap(await deriveKey(passphrase, salt), SEAL_PURPOSE, fromHex(file.wrapped) ?? new Uint8Array());
    if (key === null) throw new SvcError('key_locked', { message: 'The passphrase does not open the key store.' });
    return new Seal(createSecretKey(key));
  }

  /** Encrypts a secret so that it opens under this name only. */
  close(name: string, secret: Uint8Array): Uint8Array {
    return wrap(this.#key, SECRET_PURPOSE + name, secret);
  }

  /** The secret of a name; null where it was not sealed so. */
  open(name: string, sealed: Uint8Array): Uint8Array | null {
    return unwrap(this.#key, SECRET_PURPOSE + name, sealed);
  }
}
