/**
 * Seals secrets with a passphrase. scrypt derives a key from the passphrase, which wraps a random key. The random key
 * encrypts each secret (AES-256-GCM), bound to its name. Only the small seal file depends on the passphrase, and
 * opening it verifies the passphrase.
 */
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { CIPHER_KEY_BYTES, decrypt, encrypt, NONCE_BYTES } from './cipher.ts';
import { deriveKey, PASSPHRASE_SALT_BYTES, type Passphrase } from './passphrase.ts';

const SEAL_PURPOSE = 'svcd/seal/v1\0';
const SECRET_PURPOSE = 'svcd/sealed-key/v1\0';

/** Content of the seal file, in hex. */
export interface SealFile {
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

export class Seal {
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
