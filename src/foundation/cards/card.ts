/** Cards by which programs introduce themselves: agent cards of A2A (1.0 and 0.3) and the cards of MCP servers. */
import { isObject, readJson } from '../json.ts';
import { badCard } from './bad-card.ts';

/** Largest card, bytes of its JSON. */
export const MAX_CARD_BYTES: number = 64 * 1024;

/** A card: a JSON object of which nothing is known but that it is one. */
export type Card = Readonly<Record<string, unknown>>;

export const CARD_KINDS = ['a2a', 'mcp'] as const;
export type CardKind = (typeof CARD_KINDS)[number];

/** What only agent cards have; `url` and `skills` stand in many documents, together in those of 0.3. */
const A2A_MEMBERS = ['supportedInterfaces', 'additionalInterfaces', 'preferredTransport', 'protocolVersion', 'skills'];
const MCP_MEMBERS = ['serverInfo', 'remotes', 'transport', 'transports', 'tools', 'endpoint'];

/** What an object is the card of; null where it is none. */
export function cardKind(card: Card): CardKind | null {
  const has = (key: string): boolean => Object.hasOwn(card, key);
  const isMcp = MCP_MEMBERS.some(has);
  if (A2A_MEMBERS.slice(0, -2).some(has) || (has('skills') && !isMcp)) return 'a2a';
  if (isMcp) return 'mcp';
  return has('url') && (has('protocolVersion') || has('capabilities')) ? 'a2a' : null;
}

/**
 * The card that bytes hold: UTF-8, with or without a mark in front. Other encodings of JSON, which some clients would
 * guess, are none.
 * @throws SvcError `bad_card` with `not_a_card`, `too_large`
 */
export function readCard(bytes: Uint8Array): Card {
  if (bytes.length > MAX_CARD_BYTES) throw badCard('too_large', `it is over ${MAX_CARD_BYTES} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw badCard('not_a_card', 'it is no UTF-8', { cause });
  }
  const card = readJson(text);
  if (!isObject(card)) throw badCard('not_a_card', 'it is no JSON object');
  return card;
}
