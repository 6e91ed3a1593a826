/** Finds the card that a service publishes or a file contains. */
import { open } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { type Card, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { type CardDraft, draftFromCard } from './agent-card.ts';
import { fetchSmallJson } from './small-json.ts';

/** Well-known paths of cards, in search order. */
const WELL_KNOWN = ['.well-known/agent-card.json', '.well-known/agent.json', '.well-known/mcp.json', 'server-card'];

/** The URLs to try: the given document, or the well-known paths. */
function places(base: URL): URL[] {
  if (base.pathname.endsWith('.json')) return [base];
  const roots = new Set([base.pathname.replace(/\/?$/, '/'), '/']);
  return [...roots].flatMap((root) => WELL_KNOWN.map((path) => new URL(root + path, base.origin)));
}

/** A card with its source. */
interface Found {
  readonly url: URL;
  readonly value: unknown;
}

/** True for a file path. The address of a service starts with its host. */
function isPath(text: string): boolean {
  return /^(?:\.{0,2}[/\\]|~|[a-z]:[/\\])/i.test(text) && !text.includes('://');
}

/** @throws SvcError `not_found`, `bad_card` */
async function fromFile(path: string): Promise<Found> {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_CARD_BYTES + 1), 0, MAX_CARD_BYTES + 1, 0);
    return { url: pathToFileURL(path), value: readCard(buffer.subarray(0, bytesRead)) };
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw new SvcError('not_found', { message: `${path} cannot be read (${codeOf(cause)}).`, cause });
  }
}

async function find(text: string): Promise<Found> {
  if (isPath(text)) return fromFile(text);
  const base = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (base === null || !/^https?:$/.test(base.protocol) || base.username !== '' || base.password !== '')
    throw new SvcError('invalid_request', {
      message:
        'A card is at an HTTP URL without user name, such as http://127.0.0.1:8080, or in a file such as ./agent-card.json.',
    });
  const tried: string[] = [];
  for (const place of places(base)) {
    const { url, value, absent } = await fetchSmallJson(place);
    if (absent === undefined) return { url, value };
    tried.push(`${url.pathname} (${absent})`);
  }
  throw new SvcError('not_found', { message: `${base.origin} has no agent card. Tried ${tried.join(', ')}.` });
}

/** A draft and the card that it comes from. */
interface DraftOfCard extends CardDraft {
  readonly card: unknown;
}

/**
 * Finds the card of a service and drafts a record from it.
 * @param text URL of the service, URL of the card if it ends in `.json`, or path of a file
 * @throws SvcError `invalid_request`, `not_found`, `connect_failed`, `timeout`, `too_large`, `protocol_error`,
 *   `bad_card`
 */
export async function draftFromService(text: string): Promise<DraftOfCard> {
  const { url, value } = await find(text);
  return { ...draftFromCard(value, url), card: value };
}

/**
 * Finds the card of a service.
 * @param text as for `draftFrom`
 * @throws SvcError as `draftFrom`
 */
export async function findCard(text: string): Promise<Card> {
  const { url, value } = await find(text);
  if (!isObject(value))
    throw new SvcError('invalid_request', { message: `${url.href} is not a card: it is not a JSON object.` });
  return value;
}
