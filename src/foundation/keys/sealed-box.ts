/** Seals bytes to an X25519 key, so that only its owner reads them: HPKE (RFC 9180), base mode. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256, type KeyPair } from 'hpke';

/** DER headers of RFC 8410, as in identity/keys.ts. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_HEADER_BYTES = 12;

const suite = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);

/** A key pair that opens what was sealed to it. */
export interface SealingKey {
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
}

export interface SealedBox {
  /** The HPKE encapsulated key. */
  readonly encapsulated: Uint8Array;
  readonly ciphertext: Uint8Array;
}

/** What a box is for; who opens it has to name the same. */
export interface SealingContext {
  readonly info: Uint8Array;
  /** What goes beside it in clear. */
  readonly aad: Uint8Array;
}

/** The key pair of an X25519 private key. */
export function sealingKeyOf(privateKey: Uint8Array): SealingKey {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, privateKey]), format: 'der', type: 'pkcs8' });
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return { privateKey, publicKey: new Uint8Array(spki.subarray(SPKI_HEADER_BYTES)) };
}

/** Rejects where the key is no usable one. */
export async function sealTo(publicKey: Uint8Array, plain: Uint8Array, context: SealingContext): Promise<SealedBox> {
  const { encapsulatedSecret, ciphertext } = await suite.Seal(
    await suite.DeserializePublicKey(publicKey),
    plain,
    context,
  );
  return { encapsulated: encapsulatedSecret, ciphertext };
}

/** Opens boxes with one key, which is read once. */
export class BoxOpener {
  readonly publicKey: Uint8Array;
  readonly #key: SealingKey;
  #pair: Promise<KeyPair<CryptoKey>> | null = null;

  constructor(key: SealingKey) {
    this.publicKey = key.publicKey;
    this.#key = key;
  }

  /** Rejects where it was not sealed to this key in this context, or was changed. */
  async open({ encapsulated, ciphertext }: SealedBox, context: SealingContext): Promise<Uint8Array> {
    const pair = await (this.#pair ??= importPair(this.#key));
    return await suite.Open(pair, encapsulated, ciphertext, context);
  }
}

async function importPair({ privateKey, publicKey }: SealingKey): Promise<KeyPair<CryptoKey>> {
  const [secret, open] = await Promise.all([
    suite.DeserializePrivateKey(privateKey),
    suite.DeserializePublicKey(publicKey),
  ]);
  return { privateKey: secret, publicKey: open };
}
