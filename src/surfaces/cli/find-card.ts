/** Finds the card that a service shows of itself, or that a file holds. */
import { open } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { type Card, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { type CardDraft, draftFromCard } from './agent-card.ts';
import { fetchSmallJson } from './small-json.ts';

/** Where services show their cards, in the order in which they are looked for. */
const WELL_KNOWN = ['.well-known/agent-card.json', '.well-known/agent.json', '.well-known/mcp.json', 'server-card'];

/** The documents to look for: the one that is named, or the well-known ones below an address. */
function places(base: URL): URL[] {
  if (base.pathname.endsWith('.json')) return [base];
  const roots = new Set([base.pathname.replace(/\/?$/, '/'), '/']);
  return [...roots].flatMap((root) => WELL_KNOWN.map((path) => new URL(root + path, base.origin)));
}

/** A card where it was found. */
interface Found {
  readonly url: URL;
  readonly value: unknown;
}

/** True for the path of a file: an address of a service begins with its host. */
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
        'A card is at an http or https address without user name, such as http://127.0.0.1:8080, or in a file such as ./agent-card.json.',
    });
  const tried: string[] = [];
  for (const place of places(base)) {
    const { url, value, absent } = await fetchSmallJson(place);
    if (absent === undefined) return { url, value };
    tried.push(`${url.pathname} (${absent})`);
  }
  throw new SvcError('not_found', { message: `${base.origin} shows no agent card. Looked at ${tried.join(', ')}.` });
}

/** A draft, and the card that it is made from. */
interface DraftOfCard extends CardDraft {
  readonly card: unknown;
}

/**
 * Finds the card of a service and drafts from it.
 * @param text address of the service, of the card itself where it ends in `.json`, or the path of a file
 * @throws SvcError `invalid_request`, `not_found`, `connect_failed`, `timeout`, `too_large`, `protocol_error`, `bad_card`
 */
export async function draftFrom(text: string): Promise<DraftOfCard> {
  const { url, value } = await find(text);
  return { ...draftFromCard(value, url), card: value };
}

/**
 * Finds the card of a service.
 * @param text as of `draftFrom`
 * @throws SvcError as `draftFrom`
 */
export async function foundCard(text: string): Promise<Card> {
  const { url, value } = await find(text);
  if (!isObject(value))
    throw new SvcError('invalid_request', { message: `${url.href} is no card: it is no JSON object.` });
  return value;
}
