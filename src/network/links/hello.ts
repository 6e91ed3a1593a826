/**
 * The first exchange on a connection: both nodes check that they speak the same protocol on the
 * same network, and give each other a fresh nonce, to which agents' proofs are bound.
 */

import { createHash } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { equalBytes } from '../../foundation/bytes.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import type { Connection } from '../transport/types.ts';
import { ProtocolBreach, Refusal, type ReplyStatus, STATUS } from './status.ts';
import { readExactly } from './wire.ts';

/** The version of everything in docs/protocol-links.md. */
export const LINK_VERSION = 1;
/** The first byte of the first stream, now and in every later version. */
export const KIND_HELLO = 0x01;
export const HELLO_NONCE_BYTES = 32;
export const INSTANCE_BYTES = 16;
const NETWORK_BYTES = 32;

/** What one node says of itself on one connection. */
export interface Hello {
  /** Fresh for this connection. */
  readonly nonce: Uint8Array;
  /** Drawn when the node's process started: another one means that it has restarted. */
  readonly instance: Uint8Array;
}

/** What keeps networks apart: a hash, since the name of a private network need not be shown to strangers. */
export function networkId(name: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`svcd/network/v1\0${name}`).digest());
}

/**
 * Says hello on a connection that we dialled.
 * @throws SvcError `connect_failed` where the other node is on another network, `protocol_error`
 *   where it speaks another version or nonsense, or the signal's reason
 */
export async function sayHello(
  connection: Connection,
  ours: Hello,
  network: Uint8Array,
  signal: AbortSignal,
): Promise<Hello> {
  // protocol-links.md, step 2
  const stream = await connection.openStream();
  guard(stream);
  try {
    stream.end(Buffer.concat([Uint8Array.of(KIND_HELLO, LINK_VERSION), network, ours.nonce, ours.instance]));
    const [status = STATUS.failed] = await readExactly(stream, 1, signal);
    if (status !== STATUS.ok) throw new Refusal(status);
    return await readHello(stream, signal);
  } finally {
    // The other node has ended its half by now, or what follows is of no interest.
    stream.destroy();
  }
}

/**
 * Reads the dialler's hello from its first stream. What to answer is the status; with `ok`, the
 * caller answers through `acceptHello` once it is ready for streams.
 * @throws SvcError as `readExactly`
 */
export async function receiveHello(
  stream: Duplex,
  network: Uint8Array,
  signal: AbortSignal,
): Promise<{ readonly status: ReplyStatus; readonly hello: Hello | null }> {
  const [kind, version] = await readExactly(stream, 2, signal);
  if (kind !== KIND_HELLO) throw new ProtocolBreach('The other node did not say hello.');
  if (version !== LINK_VERSION) return { status: STATUS.otherVersion, hello: null };
  const theirs = await readExactly(stream, NETWORK_BYTES, signal);
  if (!equalBytes(theirs, network)) return { status: STATUS.otherNetwork, hello: null };
  return { status: STATUS.ok, hello: await readHello(stream, signal) };
}

/** Answers a hello with our own. */
export function acceptHello(stream: Duplex, ours: Hello): void {
  // protocol-links.md, step 3
  stream.end(Buffer.concat([Uint8Array.of(STATUS.ok), ours.nonce, ours.instance]));
  stream.resume();
}

async function readHello(stream: Duplex, signal: AbortSignal): Promise<Hello> {
  const bytes = await readExactly(stream, HELLO_NONCE_BYTES + INSTANCE_BYTES, signal);
  // Copies: the bytes are a view of a large buffer, which should not live as long as the connection.
  return {
    nonce: Uint8Array.from(bytes.subarray(0, HELLO_NONCE_BYTES)),
    instance: Uint8Array.from(bytes.subarray(HELLO_NONCE_BYTES)),
  };
}
