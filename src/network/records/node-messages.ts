/** What nodes say to each other over QUIC: records that no datagram holds, and whole pages of a key's records. */
import { encodeCbor, isBytes, isUint } from '../../foundation/cbor.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import { MAX_RECORD_BYTES } from '../../foundation/records/record.ts';
import { RECORD_DIGEST_BYTES, type RecordType } from '../../foundation/records/types.ts';
import { decodeTypes, readMap } from './messages.ts';
import { NETWORK_TAG_BYTES } from './network-tag.ts';
import type { Page } from './record-store.ts';

/** Records in one page, bytes; one record alone may be longer. */
export const PAGE_BYTES = 192 * 1024;
/** Largest request: one record and what stands around it, bytes. */
export const MAX_NODE_REQUEST_BYTES = MAX_RECORD_BYTES + 256;
/** Largest answer: one page and what stands around it, bytes. */
export const MAX_NODE_REPLY_BYTES = PAGE_BYTES + MAX_RECORD_BYTES + 4096;

export type NodeRequest =
  | { readonly kind: 'store'; readonly tag: Uint8Array; readonly key: Uint8Array; readonly record: Uint8Array }
  | {
      readonly kind: 'page';
      readonly tag: Uint8Array;
      readonly key: Uint8Array;
      readonly types: readonly RecordType[];
      /** Where the page begins; 0 for the first. */
      readonly from: number;
      /** Digests of records that are not wanted, one behind the other; at most `MAX_KNOWN`. */
      readonly known?: Uint8Array;
    };

/** Most records that a reader of pages may say that it has. */
export const MAX_KNOWN = 4000;

export function encodeNodeRequest(request: NodeRequest): Uint8Array {
  const { tag: n, key: k } = request;
  return request.kind === 'store'
    ? encodeCbor({ k, n, r: request.record })
    : encodeCbor({ f: request.from, k, n, t: Uint8Array.from(request.types), x: request.known });
}

export function decodeNodeRequest(bytes: Uint8Array): NodeRequest | null {
  const map = readMap(bytes, MAX_NODE_REQUEST_BYTES, ['k', 'n'], ['r', 'f', 't', 'x']);
  if (map === null || !isBytes(map['k'], KEY_BYTES) || !isBytes(map['n'], NETWORK_TAG_BYTES)) return null;
  const { k: key, n: tag, r: record, f: from, t, x: known } = map;
  const isStore = from === undefined && t === undefined && known === undefined;
  if (isBytes(record)) return isStore ? { kind: 'store', tag, key, record } : null;
  const types = decodeTypes(t);
  if (record !== undefined || types === null || !isUint(from)) return null;
  if (known === undefined) return { kind: 'page', tag, key, types, from };
  const fits =
    isBytes(known) && known.length % RECORD_DIGEST_BYTES === 0 && known.length / RECORD_DIGEST_BYTES <= MAX_KNOWN;
  return fits ? { kind: 'page', tag, key, types, from, known } : null;
}

export function encodePage(page: Page): Uint8Array {
  return encodeCbor({ m: page.next, r: page.records });
}

function isRecord(value: unknown): value is Uint8Array {
  return isBytes(value) && value.length <= MAX_RECORD_BYTES;
}

export function decodePage(bytes: Uint8Array): Page | null {
  const map = readMap(bytes, MAX_NODE_REPLY_BYTES, ['m', 'r']);
  if (map === null || !isUint(map['m']) || !Array.isArray(map['r']) || !map['r'].every(isRecord)) return null;
  return { records: map['r'], next: map['m'] };
}
