/**
 * Files sealed with a password: a line of JSON that says how, then the content in chunks, each under
 * AES-256-GCM with that line as associated data. The number of a chunk, and whether it is the last
 * one, are its nonce, so none can be moved, left out or cut off; the key is made anew for every file
 * from the password and a salt. Format: docs/moving.md, "Sealed files".
 */
import { randomBytes } from 'node:crypto';
import { toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { memberOf, readJson } from '../json.ts';
import { CIPHER, decrypt, encrypt, NONCE_BYTES, TAG_BYTES } from '../keys/cipher.ts';
import { deriveKey, PASSPHRASE_SALT_BYTES, type Passphrase } from '../keys/passphrase.ts';
import type { ScryptCost } from '../keys/scrypt.ts';
import { ByteReader, type ByteSource } from './byte-reader.ts';

/** What a sealed file holds. */
export type SealedKind = 'agent' | 'node';

/** Content of one chunk. */
const CHUNK_BYTES: number = 64 * 1024;
/** Longest first line. */
const MAX_HEADER_BYTES = 1024;
/** The largest number of a chunk: what four bytes hold. */
const MAX_CHUNKS: number = 2 ** 32 - 1;
/** The beginning of every sealed file. */
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

/** Seals what comes. @param password not empty */
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
 * The content of a sealed file. Each piece is authentic when it comes; that nothing is missing is
 * known at the end.
 * @throws SvcError `wrong_password`; `bad_file` where it is sealed otherwise, damaged or cut off
 */
export async function* unseal(kind: SealedKind, password: Passphrase, sealed: ByteSource): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(sealed);
  const line = await reader.readLine(MAX_HEADER_BYTES);
  const header = line === null ? null : readHeader(line, password.cost);
  if (line === null || header === null) throw new SvcError('bad_file');
  if (header.kind !== kind)
    throw new SvcError('bad_file', {
      message: `This file holds ${header.kind === 'agent' ? 'an agent: use "svc agents import"' : 'a whole node: use "svc restore"'}.`,
    });
  const key = await deriveKey(password, header.salt);
  for (let index = 0; index <= MAX_CHUNKS; index++) {
    const chunk = await reader.read(CHUNK_BYTES + TAG_BYTES);
    const isLast = await reader.atEnd();
    const plain = decrypt(key, nonceOf(index, isLast), line, chunk);
    if (plain === null && index === 0 && decrypt(key, nonceOf(0, !isLast), line, chunk) === null)
      throw new SvcError('wrong_password');
    if (plain === null)
      throw new SvcError('bad_file', { message: 'The file is damaged or cut off: nothing of it was used.' });
    yield plain;
    if (isLast) return;
  }
}

/** What a first line says; null where this version did not write it, with this cost. */
function readHeader(line: Uint8Array, cost: ScryptCost): Header | null {
  const value = readJson(Buffer.from(line).toString());
  const [salt, kind] = [memberOf(value, 'salt'), memberOf(value, 'kind')];
  if ((kind !== 'agent' && kind !== 'node') || typeof salt !== 'string' || !/^[0-9a-f]{64}$/.test(salt)) return null;
  const header: Header = { kind, salt: new Uint8Array(Buffer.from(salt, 'hex')) };
  // Nobody but us decides what a guess costs: the whole line has to be the one that we write.
  return Buffer.compare(headerLine(header, cost), line) === 0 ? header : null;
}
