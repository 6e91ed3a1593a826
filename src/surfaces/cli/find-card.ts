/** Finds the card that a service shows of itself. */
import { SvcError } from '../../foundation/errors.ts';
import { type CardDraft, draftFromCard } from './agent-card.ts';
import { fetchSmallJson } from './small-json.ts';

/** Where services show their cards, in the order in which they are looked for. */
const WELL_KNOWN = ['.well-known/agent-card.json', '.well-known/agent.json', '.well-known/mcp.json'];

/** The documents to look for: the one that is named, or the well-known ones below an address. */
function places(base: URL): URL[] {
  if (base.pathname.endsWith('.json')) return [base];
  const roots = new Set([base.pathname.replace(/\/?$/, '/'), '/']);
  return [...roots].flatMap((root) => WELL_KNOWN.map((path) => new URL(root + path, base.origin)));
}

/**
 * Finds the card of a service and drafts from it.
 * @param text address of the service, or of the card itself where it ends in `.json`
 * @throws SvcError `invalid_request`, `not_found`, `connect_failed`, `timeout`, `too_large`, `protocol_error`
 */
export async function draftFrom(text: string): Promise<CardDraft> {
  const base = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (base === null || !/^https?:$/.test(base.protocol) || base.username !== '' || base.password !== '')
    throw new SvcError('invalid_request', {
      message: '--from takes an http or https address without user name, such as http://127.0.0.1:8080.',
    });
  const tried: string[] = [];
  for (const place of places(base)) {
    const { url, value, absent } = await fetchSmallJson(place);
    if (absent === undefined) return draftFromCard(value, url);
    tried.push(`${url.pathname} (${absent})`);
  }
  throw new SvcError('not_found', { message: `${base.origin} shows no agent card. Looked at ${tried.join(', ')}.` });
}
