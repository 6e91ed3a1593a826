/** The header of a link stream: caller, called agent and purpose. Byte-exact format: docs/protocol-links.md. */

import { SvcError } from '../../foundation/errors.ts';
import { type Aid, aidFromBytes, aidToBytes } from '../../foundation/identity/aid.ts';
import { BinaryReader, u16 } from '../peers/wire.ts';
import { encodeProof, type Proof, takeProof } from './proofs.ts';

/** Largest header, without the byte of its kind and the two of its length. */
export const MAX_LINK_HEADER_BYTES = 4096 - 3;
/** Longest access token, bytes of UTF-8. */
export const MAX_ACCESS_TOKEN_BYTES = 1024;
const MAX_PURPOSE_BYTES = 16;
const PURPOSE = /^[a-z0-9-]+$/;

const FLAG_PROOF = 1;
const FLAG_WANTS_PROOF = 2;

export interface LinkHeader {
  readonly caller: Aid;
  readonly called: Aid;
  /** Any short name. The handler is looked up later. */
  readonly purpose: string;
  readonly accessToken: string | undefined;
  /** The caller's proof, or null after an earlier proof on this connection. */
  readonly proof: Proof | null;
  /** The called agent is not yet proven to the caller. */
  readonly wantsProof: boolean;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Encodes a header.
 * @throws SvcError `too_large` if the access token is too long
 */
export function encodeHeader(header: LinkHeader): Uint8Array {
  const caller = aidToBytes(header.caller);
  const called = aidToBytes(header.called);
  const purpose = Buffer.from(header.purpose, 'ascii');
  const token = Buffer.from(header.accessToken ?? '', 'utf8');
  if (token.length > MAX_ACCESS_TOKEN_BYTES)
    throw new SvcError('too_large', { message: `An access token has at most ${MAX_ACCESS_TOKEN_BYTES} bytes.` });
  const flags = (header.proof === null ? 0 : FLAG_PROOF) | (header.wantsProof ? FLAG_WANTS_PROOF : 0);
  return Buffer.concat([
    Uint8Array.of(flags, caller.length),
    caller,
    Uint8Array.of(called.length),
    called,
    Uint8Array.of(purpose.length),
    purpose,
    u16(token.length),
    token,
    header.proof === null ? new Uint8Array(0) : encodeProof(header.proof),
  ]);
}

/** Decodes a header from a stranger. Null for any bytes that `encodeHeader` does not produce. */
export function decodeHeader(bytes: Uint8Array): LinkHeader | null {
  try {
    return takeHeader(new BinaryReader(bytes));
  } catch {
    return null;
  }
}

function takeHeader(frame: BinaryReader): LinkHeader | null {
  const flags = frame.u8();
  if ((flags & ~(FLAG_PROOF | FLAG_WANTS_PROOF)) !== 0) return null;
  const caller = aidFromBytes(frame.bytes(frame.u8()));
  const called = aidFromBytes(frame.bytes(frame.u8()));
  const purpose = Buffer.from(frame.bytes(frame.u8())).toString('latin1');
  if (purpose.length > MAX_PURPOSE_BYTES || !PURPOSE.test(purpose)) return null;
  const tokenBytes = frame.bytes(frame.u16());
  if (tokenBytes.length > MAX_ACCESS_TOKEN_BYTES) return null;
  // Most links have no token, and the decoder is slow.
  const token = tokenBytes.length === 0 ? '' : utf8.decode(tokenBytes);
  const proof = (flags & FLAG_PROOF) === 0 ? null : takeProof(frame);
  frame.end();
  const accessToken = token === '' ? undefined : token;
  return { caller, called, purpose, accessToken, proof, wantsProof: (flags & FLAG_WANTS_PROOF) !== 0 };
}
