/** Cards that describe programs: A2A agent cards (1.0 and 0.3) and MCP server cards. */

import { type ErrorDetails, SvcError } from '../errors.ts';
import { isObject, readJson } from '../json.ts';

/**
 * Format: `not_a_card`, `not_canonical`, `too_large`. Addresses: `foreign_address`, `special_address`. Signature:
 * `foreign_root`, `unsigned`, `bad_signature`. Another agent's card: `swapped`. Age: `replayed`, `expired`.
 */
export type CardFault =
  | 'not_a_card'
  | 'not_canonical'
  | 'too_large'
  | 'foreign_address'
  | 'special_address'
  | 'foreign_root'
  | 'unsigned'
  | 'bad_signature'
  | 'swapped'
  | 'replayed'
  | 'expired';

/** @param why completes the sentence "The card is invalid: …" */
export function badCard(
  reason: CardFault,
  why: string,
  { details = {}, cause }: { readonly details?: ErrorDetails; readonly cause?: unknown } = {},
): SvcError {
  return new SvcError('bad_card', {
    message: `The card is invalid: ${why}.`,
    details: { reason, ...details },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Maximum size of a card in JSON, in bytes. */
export const MAX_CARD_BYTES: number = 64 * 1024;

/** A card: any JSON object. */
export type Card = Readonly<Record<string, unknown>>;

export const CARD_KINDS = ['a2a', 'mcp'] as const;
export type CardKind = (typeof CARD_KINDS)[number];

/**
 * Members that only agent cards have. `url` and `skills` occur in many documents, but both together only in version 0.3.
 */
const A2A_MEMBERS = ['supportedInterfaces', 'additionalInterfaces', 'preferredTransport', 'protocolVersion', 'skills'];
const MCP_MEMBERS = ['serverInfo', 'remotes', 'transport', 'transports', 'tools', 'endpoint'];

/** The kind of a card; null if the object is not a card. */
export function cardKind(card: Card): CardKind | null {
  const has = (key: string): boolean => Object.hasOwn(card, key);
  const isMcp = MCP_MEMBERS.some(has);
  if (A2A_MEMBERS.slice(0, -2).some(has) || (has('skills') && !isMcp)) return 'a2a';
  if (isMcp) return 'mcp';
  return has('url') && (has('protocolVersion') || has('capabilities')) ? 'a2a' : null;
}

/**
 * Parses a card from UTF-8, with or without a byte order mark. Other encodings are rejected.
 * @throws SvcError `bad_card` with `not_a_card`, `too_large`
 */
export function readCard(bytes: Uint8Array): Card {
  if (bytes.length > MAX_CARD_BYTES) throw badCard('too_large', `it is larger than ${MAX_CARD_BYTES} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw badCard('not_a_card', 'it is not UTF-8', { cause });
  }
  const card = readJson(text);
  if (!isObject(card)) throw badCard('not_a_card', 'it is not a JSON object');
  return card;
}
