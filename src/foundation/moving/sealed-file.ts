/**
 * Files encrypted with a password: a line of JSON with the parameters, then the content in chunks, each with
 * AES-256-GCM and that line as associated data. The nonce is the number of a chunk and whether it is the last one, so
 * that no chunk can be moved, removed or truncated. Each file has its own key, derived from the password and a salt.
 * Format: docs/moving.md, "Sealed files".
 */
import { randomBytes } from 'node:crypto';
import { toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { memberOf, readJson } from '../json.ts';
import { CIPHER, decrypt, encrypt, NONCE_BYTES, TAG_BYTES } from '../keys/cipher.ts';
import { deriveKey, PASSPHRASE_SALT_BYTES, type Passphrase, type ScryptCost } from '../keys/passphrase.ts';
import { ByteReader, type ByteSource } from './byte-reader.ts';

/** Kinds of content. */
export type SealedKind = 'agent' | 'node';

/** Size of a chunk, bytes. */
const CHUNK_BYTES: number = 64 * 1024;
/** Longest first line. */
const MAX_HEADER_BYTES = 1024;
/** The largest chunk number, which has four bytes. */
const MAX_CHUNKS: number = 2 ** 32 - 1;
/** The start of every sealed file. */
export const SEALED_PREFIX = '{"svcd_sealed":';

interface Header {
  readonly kind: SealedKind;
  readonly salt: Uint8Array;
}

function headerLine({ kind, salt }: Header, { N, r, p }: ScryptCost): Buffer {
  const header = {
    svcd_sealed: 1,
    kind,
    cipher: CIPHER,
    chunk_bytes: CHUNK_BYTES,
    kdf: 'scrypt',
    n: N,
    r,
    p,
    salt: toHex(salt),
  };
  return Buffer.from(`${JSON.stringify(header)}\n`);
}

function nonceOf(index: number, isLast: boolean): Uint8Array {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUInt32BE(index, NONCE_BYTES - 5);
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0;
  return nonce;
}

/**
 * Encrypts the input.
 * @param password not empty
 */
export async function* seal(kind: SealedKind, password: Passphrase, plain: ByteSource): AsyncGenerator<Uint8Array> {
  const salt = new Uint8Array(randomBytes(PASSPHRASE_SALT_BYTES));
  const line = headerLine({ kind, salt }, password.cost);
  const key = await deriveKey(password, salt);
  yield line;
  const reader = new ByteReader(plain);
  for (let index = 0; ; index++) {
    if (index > MAX_CHUNKS) throw new SvcError('too_large');
    const chunk = await reader.read(CHUNK_BYTES);
    const isLast = await reader.atEnd();
    yield encrypt(key, nonceOf(index, isLast), line, chunk);
    if (isLast) return;
  }
}

/**
 * Decrypts a sealed file. Each chunk is authenticated when it is returned; only the end shows that nothing is missing.
 * @throws SvcError `wrong_password`; `bad_file` if the file has another format, or is damaged or truncated
 */
export async function* unseal(kind: SealedKind, password: Passphrase, sealed: ByteSource): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(sealed);
  const line = await reader.readLine(MAX_HEADER_BYTES);
  const header = line === null ? null : readHeader(line, password.cost);
  if (line === null || header === null) throw new SvcError('bad_file');
  if (header.kind !== kind)
    throw new SvcError('bad_file', {
      message: `This file contains ${header.kind === 'agent' ? 'an agent: use "svc agents import"' : 'a node: use "svc restore"'}.`,
    });
  const key = await deriveKey(password, header.salt);
  for (let index = 0; index <= MAX_CHUNKS; index++) {
    const chunk = await reader.read(CHUNK_BYTES + TAG_BYTES);
    const isLast = await reader.atEnd();
    const plain = decrypt(key, nonceOf(index, isLast), line, chunk);
    if (plain === null && index === 0 && decrypt(key, nonceOf(0, !isLast), line, chunk) === null)
      throw new SvcError('wrong_password');
    if (plain === null)
      throw new SvcError('bad_file', { message: 'The file is damaged or truncated. Nothing was imported.' });
    yield plain;
    if (isLast) return;
  }
}

/** Parses a first line. Null if it is not exactly a line of this version with this cost. */
function readHeader(line: Uint8Array, cost: ScryptCost): Header | null {
  const value = readJson(Buffer.from(line).toString());
  const [salt, kind] = [memberOf(value, 'salt'), memberOf(value, 'kind')];
  if ((kind !== 'agent' && kind !== 'node') || typeof salt !== 'string' || !/^[0-9a-f]{64}$/.test(salt)) return null;
  const header: Header = { kind, salt: new Uint8Array(Buffer.from(salt, 'hex')) };
  // The file must not choose the cost of a password attempt: only the exact line of this version is accepted.
  return Buffer.compare(headerLine(header, cost), line) === 0 ? header : null;
}
