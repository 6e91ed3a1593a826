/** Keys of the record network. Each kind is a SHA-256 with its own prefix. */
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

/** Key of an agent's endpoints, custom records and encryption keys. */
export function agentKey(aid: Aid): Uint8Array {
  return key('agent', aidToBytes(aid));
}

/** Key of the providers of a service name. */
export function serviceKey(service: string): Uint8Array {
  return key('service', service);
}

/** Key of the notes for an agent. */
export function mailboxKey(recipient: Aid): Uint8Array {
  return key('mailbox', aidToBytes(recipient));
}

/** Key of the requests to meet a node without a helper at a TURN server. @param publicKey of its `TurnRendezvous` */
export function turnRendezvousKey(publicKey: Uint8Array): Uint8Array {
  return key('meeting', publicKey);
}

/**
 * True if a record may be stored under a key. The signature covers the fields that decide this, so a storage node
 * cannot move a record. A note does not contain its recipient in clear text and is signed by an identity that is used
 * only once, so it belongs to the mailbox key at the start of its payload. Anyone may write to any mailbox, by design.
 * Only the recipient can find out whether the sealed part is really for it.
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
