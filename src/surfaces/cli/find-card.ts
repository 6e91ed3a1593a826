/** Finds the card that a service publishes or a file contains. */
import { open } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { isPublicHost } from '../../foundation/address.ts';
import { type Card, type CardKind, cardKind, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { UNSAFE } from '../../foundation/display-text.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../foundation/json.ts';
import { MAX_BRIEF_BYTES, MAX_LABEL_BYTES, MAX_NAME_BYTES } from '../../foundation/records/types.ts';
import type { AnswerOf } from './client.ts';
import { readAll } from './input.ts';
import { safeLine } from './text.ts';

// Explains which interfaces are missing in a signed card.

type OmittedInterfaces = AnswerOf<'cardSet'>['left_out'];

/** One line per missing interface, with the fix for gRPC. Empty if none is missing. */
export function missingInterfacesText(interfaces: OmittedInterfaces): string {
  const lines = interfaces.map(({ protocol_binding: binding, address, service_port }) => {
    const what = binding === null ? 'interface' : `${safeLine(binding)} interface`;
    return `Omitted: its ${what} at ${safeLine(address)}, because the agent is bound to port ${service_port} for that.`;
  });
  if (interfaces.some(({ protocol_binding }) => protocol_binding === 'GRPC'))
    lines.push('Bind both with "svc inbound bind --addr http://host:port,tcp://host:port", then set the card again.');
  return lines.join('\n');
}

// Fetches a small JSON document from a server that the user named. The response is foreign: its size and time are
// limited, and it cannot redirect to another host, such as one behind the user's firewall.

/** Largest document, bytes after decompression. */
const MAX_DOCUMENT_BYTES = 256 * 1024;
/** Deadline for one document including redirects, milliseconds. */
const DOCUMENT_TIMEOUT_MS = 10_000;
/** Largest number of redirects. */
const MAX_REDIRECTS = 3;

const ABSENT_STATUSES: ReadonlySet<number> = new Set([404, 405, 410]);

/** A document, or why there is none. Other errors are thrown. */
interface SmallJson {
  readonly url: URL;
  readonly value?: unknown;
  readonly absent?: string;
}

function failure(url: URL, error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  if (error instanceof Error && error.name === 'TimeoutError')
    return new SvcError('timeout', {
      message: `${url.href} did not respond within ${DOCUMENT_TIMEOUT_MS / 1000} s.`,
      cause: error,
    });
  const code = memberOf(error, 'cause', 'code');
  return new SvcError('connect_failed', {
    message: `${url.href} cannot be reached${typeof code === 'string' ? ` (${code})` : ''}.`,
    cause: error,
  });
}

/** The target of a redirect: the same host, and never from https to http. */
function redirected(from: URL, location: string | null): URL {
  const to = URL.parse(location ?? '', from);
  if (to === null) throw new SvcError('protocol_error', { message: `${from.href} redirects without a location.` });
  const secured = from.protocol === 'http:' && to.protocol === 'https:';
  if (to.hostname !== from.hostname || (to.origin !== from.origin && !secured))
    throw new SvcError('protocol_error', {
      message: `${from.href} redirects to another server: ${to.href}. Use that URL if you trust it.`,
    });
  return to;
}

async function follow(url: URL, signal: AbortSignal, redirects: number): Promise<SmallJson> {
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'manual', signal });
  const { status, headers } = response;
  if (status >= 300 && status < 400) {
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS)
      throw new SvcError('protocol_error', { message: `${url.href} redirects more than ${MAX_REDIRECTS} times.` });
    return follow(redirected(url, headers.get('location')), signal, redirects + 1);
  }
  if (!response.ok) {
    await response.body?.cancel();
    if (ABSENT_STATUSES.has(status)) return { url, absent: `status ${status}` };
    throw new SvcError('protocol_error', { message: `${url.href} responded with status ${status}.` });
  }
  const tooLarge = new SvcError('too_large', { message: `${url.href} has more than ${MAX_DOCUMENT_BYTES} bytes.` });
  const value = readJson((await readAll(response.body ?? [], MAX_DOCUMENT_BYTES, tooLarge)).toString('utf8'));
  return value === undefined ? { url, absent: 'not JSON' } : { url, value };
}

/** Fetches a JSON document. @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error` */
export async function fetchSmallJson(url: URL, timeoutMs: number = DOCUMENT_TIMEOUT_MS): Promise<SmallJson> {
  try {
    return await follow(url, AbortSignal.timeout(timeoutMs), 0);
  } catch (error) {
    throw failure(url, error);
  }
}

// Drafts a service record from the card of a service: an A2A agent card, or the card of an MCP server. A card is
// foreign text that goes out under the user's name, so a draft is short, plain, and shown before it is published.

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
