/** Where records live: each kind of key is a SHA-256 under a prefix of its own. */
import { createHash } from 'node:crypto';
import { equalBytes } from '../bytes.ts';
import { type Aid, aidToBytes } from '../identity/aid.ts';
import { decodeServicePayload } from './payloads.ts';
import type { SignedRecord } from './record.ts';
import { RECORD } from './types.ts';

export const KEY_BYTES = 32;

function key(prefix: string, body: Uint8Array | string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`svcd/key/${prefix}\0`).update(body).digest());
}

/** Where an agent's endpoints, custom records and encryption keys live. */
export function agentKey(aid: Aid): Uint8Array {
  return key('agent', aidToBytes(aid));
}

/** Where the providers of a service name live. */
export function serviceKey(service: string): Uint8Array {
  return key('service', service);
}

/** Where the notes for an agent wait. */
export function mailboxKey(recipient: Aid): Uint8Array {
  return key('mailbox', aidToBytes(recipient));
}

/** Where those ask who want to meet a node that no helper introduces. @param publicKey of its `TurnRendezvous` */
export function turnRendezvousKey(publicKey: Uint8Array): Uint8Array {
  return key('meeting', publicKey);
}

/**
 * True where a record may be stored under a key. What decides is always under the record's
 * signature, so a storing node cannot move a record elsewhere. A note names its recipient nowhere in
 * clear and is signed by an identity made for it alone: it belongs under the mailbox key that its
 * payload begins with. Anyone may write to any mailbox, by design; whether the sealed part is truly
 * for that recipient shows when the recipient opens it.
 */
export function belongsUnderKey(record: SignedRecord, at: Uint8Array): boolean {
  // protocol.md, step 7
  if (record.type === RECORD.note)
    return record.payload.length > KEY_BYTES && equalBytes(record.payload.subarray(0, KEY_BYTES), at);
  if (record.type === RECORD.service) {
    const payload = decodeServicePayload(record.payload);
    return payload !== null && equalBytes(serviceKey(payload.service), at);
  }
  return equalBytes(agentKey(record.aid), at);
}
