/**
 * Drafts a service record from the card of a service: an A2A agent card, or the card of an MCP server. A card is
 * foreign text that goes out under the user's name, so a draft is short, plain, and shown before it is published.
 */

import { isPublicHost } from '../../foundation/address.ts';
import { type Card, type CardKind, cardKind } from '../../foundation/cards/card.ts';
import { UNSAFE } from '../../foundation/display-text.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { MAX_BRIEF_BYTES, MAX_LABEL_BYTES, MAX_NAME_BYTES } from '../../foundation/records/types.ts';

/** The parts of a service record that a card provides. Missing members are absent. */
export interface CardDraft {
  readonly name: string | undefined;
  readonly brief: string | undefined;
  readonly url: string | undefined;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  /** The document that the draft comes from. */
  readonly from: string;
  /** Omitted or shortened parts, with the reason. */
  readonly remarks: readonly string[];
}

/** Bytes of tags in a draft. Together with a brief and a name of full length they still fit into one record. */
const MAX_TAGS_BYTES = 128;
/** Longest address in a draft, bytes. */
const MAX_URL_BYTES = 128;

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** One line without control or invisible characters. Undefined if it is empty. */
function plain(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.toWellFormed().replace(UNSAFE, ' ').replace(/\s+/g, ' ').trim();
  return text === '' ? undefined : text;
}

/** As many whole words as fit, with an ellipsis if something was cut. */
function cut(text: string | undefined, maxBytes: number): string | undefined {
  if (text === undefined || Buffer.byteLength(text) <= maxBytes) return text;
  let short = '';
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (Buffer.byteLength(`${short}${segment}…`) > maxBytes) break;
    short += segment;
  }
  const atWord = short.replace(/\s\S*$/, '');
  return `${atWord.length > short.length / 2 ? atWord : short}…`;
}

/** As many labels as fit. */
function fitting(labels: ReadonlySet<string>, maxBytes: number): string[] {
  let size = 0;
  return [...labels].filter((label) => {
    const bytes = Buffer.byteLength(label);
    const fits = bytes <= MAX_LABEL_BYTES && size + bytes <= maxBytes;
    if (fits) size += bytes;
    return fits;
  });
}

/** The first candidate that strangers can use. `hidden` if all candidates are private. */
function publicUrl(candidates: readonly unknown[]): { readonly url: string | undefined; readonly hidden: boolean } {
  const urls = candidates
    .flatMap((candidate) => URL.parse(plain(candidate) ?? '') ?? [])
    .filter((url) => /^https?:$/.test(url.protocol) && url.username === '' && url.password === '');
  const url = urls.find((one) => isPublicHost(one) && Buffer.byteLength(one.href) <= MAX_URL_BYTES)?.href;
  return { url, hidden: url === undefined && urls.length > 0 };
}

/** The kind of a card. A card that does not name its kind is classified by its location. */
function protocolOf(card: Card, url: URL): CardKind {
  return cardKind(card) ?? (url.pathname.endsWith('/mcp.json') ? 'mcp' : 'a2a');
}

/** Converts a card to the fields of a service record. @throws SvcError `invalid_request` if it is not a card */
export function draftFromCard(card: unknown, from: URL): CardDraft {
  if (!isObject(card))
    throw new SvcError('invalid_request', { message: `${from.href} is not an agent card: it is not a JSON object.` });
  const server = isObject(card['serverInfo']) ? card['serverInfo'] : {};
  const name = plain(card['title']) ?? plain(server['title']) ?? plain(card['name']) ?? plain(server['name']);
  const brief = plain(card['description']) ?? plain(server['description']);
  if (name === undefined && brief === undefined)
    throw new SvcError('invalid_request', {
      message: `${from.href} is not an agent card: it has neither a name nor a description.`,
    });
  const skills = list(card['skills']).filter(isObject);
  const tags = [...list(card['tags']), ...skills.flatMap((skill) => list(skill['tags']))];
  const provider = isObject(card['provider']) ? card['provider']['url'] : undefined;
  const { url, hidden } = publicUrl([card['documentationUrl'], card['url'], card['websiteUrl'], provider]);
  const wanted = new Set(tags.flatMap((tag) => plain(tag)?.toLowerCase() ?? []));
  const keptTags = fitting(wanted, MAX_TAGS_BYTES);
  const shortBrief = cut(brief, MAX_BRIEF_BYTES);
  const shortName = cut(name, MAX_NAME_BYTES);
  const leftOut = wanted.size - keptTags.length;
  return {
    name: shortName,
    brief: shortBrief,
    url,
    protocols: [protocolOf(card, from)],
    tags: keptTags,
    from: from.href,
    remarks: [
      ...(shortBrief === brief ? [] : [`The description was cut to ${MAX_BRIEF_BYTES} bytes.`]),
      ...(shortName === name ? [] : [`The name was cut to ${MAX_NAME_BYTES} bytes.`]),
      ...(leftOut === 0 ? [] : [`${leftOut} of ${wanted.size} tags were omitted because they do not fit.`]),
      ...(hidden ? ['Its address was omitted: strangers cannot use it, and they call the agent instead.'] : []),
    ],
  };
}
