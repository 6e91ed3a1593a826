/**
 * Cards of A2A agents at a local address: which requests return a card, and how its response is forwarded. The
 * addresses in a card lead to the agent's own server, so a client that follows them unchanged bypasses the local
 * address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { brokenResponse } from '../../capabilities/calls/error-response.ts';
import { filterHeaders, headerOf, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { ReadResponse } from '../../capabilities/calls/http-caller.ts';
import type { LocalCard } from '../../capabilities/cards/remote-cards.ts';
import { badCard, type Card, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { CollectedBytes } from '../../foundation/collected-bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import type { ReshapedResponse } from '../rest/remote-call.ts';
import { type ResponsePlace, rewriteLocation } from '../rest/remote-headers.ts';

/** Largest JSON-RPC request that may request a card, bytes: it contains a method and an ID. */
const MAX_CARD_CALL_BYTES = 4096;
/** Paths of cards: the public one, and the extended one for authenticated clients (HTTP+JSON of 0.3 and 1.0). */
const CARD_PATHS = [
  /\/\.well-known\/agent(?:-card)?\.json$/,
  /\/(?:extendedAgentCard|agent\/authenticatedExtendedCard)$/,
  /\/v1\/card$/,
];
/** JSON-RPC methods that return a card, in 1.0 and in 0.3. */
const CARD_METHODS: ReadonlySet<unknown> = new Set(['GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard']);
/** Headers that would make the server send a partial or encoded card. */
const CONDITIONAL_HEADERS = /^(?:accept-encoding|if-.*|range)$/;
/** Headers that describe the bytes of the server. */
const BODY_HEADERS =
  /^(?:accept-ranges|cache-control|content-(?:digest|encoding|length|md5|range|type)|digest|etag|expires|last-modified|repr-digest|signature(?:-input)?|trailer)$/;
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 205]);
const JSON_TYPE = 'application/json';
/** Content types of JSON. The bytes are UTF-8. */
const JSON_TYPES = /^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** How a card is requested: as a document, or by a JSON-RPC call. */
export type CardRequestKind = 'document' | 'call';

/** True for the path of a card. */
function isCardPath(path: string): boolean {
  const [bare = ''] = path.split('?', 1);
  return CARD_PATHS.some((pattern) => pattern.test(bare));
}

/** True if a request is for a card document. */
export function isCardRequest({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
  return method === 'GET' && isCardPath(url);
}

/** True for a JSON-RPC call, or batch, that returns a card. */
export function isCardCall(body: Uint8Array): boolean {
  if (body.length > MAX_CARD_CALL_BYTES) return false;
  const text = Buffer.from(body).toString('utf8');
  if (!/extended/i.test(text) && !text.includes('\\u')) return false;
  let call: unknown;
  try {
    call = JSON.parse(text);
  } catch {
    return false;
  }
  const calls: readonly unknown[] = Array.isArray(call) ? call : [call];
  return calls.some((one) => isObject(one) && CARD_METHODS.has(one['method']));
}

/** Headers for a request of the complete, unencoded card. */
export function cardRequestHeaders(raw: RawHeaders): string[] {
  return [...filterHeaders(raw, (name) => !CONDITIONAL_HEADERS.test(name)), 'Accept-Encoding', 'identity'];
}

async function collect({ body }: ReadResponse): Promise<Uint8Array> {
  const bytes = new CollectedBytes(MAX_CARD_BYTES);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>)
      if (!bytes.add(chunk)) throw badCard('too_large', `it has more than ${MAX_CARD_BYTES} bytes`);
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw brokenResponse(body, cause);
  } finally {
    body.destroy();
  }
  return bytes.bytes();
}

/** A redirect must lead to another card path here, so that its response is processed too. */
function checkRedirect(headers: RawHeaders, question: CardRequestKind, place: ResponsePlace): void {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'location');
  const location = at < 0 ? null : rewriteLocation(headers[at + 1] ?? '', place);
  if (location !== null && location.startsWith('/') && (question === 'call' || isCardPath(location))) return;
  throw badCard('foreign_address', 'the agent redirects to another address');
}

/** Errors of a service that may have a card anyway. */
const UNREACHABLE_CODES: ReadonlySet<string> = new Set([
  'no_inbound',
  'inbound_unreachable',
  'connect_failed',
  'relay_required',
  'clock_wrong',
  'bad_response',
  'resolve_failed',
  'network_unavailable',
  'timeout',
]);

/** True if the signed card of the agent can replace the public card of an unreachable service. */
export function canUseSignedCard(request: IncomingMessage, error: unknown): boolean {
  const isPublic = isCardRequest(request) && /\/\.well-known\//.test(request.url ?? '');
  return isPublic && error instanceof SvcError && UNREACHABLE_CODES.has(error.code);
}

/** Sends a card that does not come from the service. */
export function sendLocalCard(response: ServerResponse, { card }: LocalCard): void {
  const { headers, body } = answered([], card);
  for (const [name, value] of pairs(headers)) response.setHeader(name, value);
  response.end(body);
}

/** Converts a card to its local form. */
export type LocalizeCard = (card: Card) => Promise<LocalCard>;

function answered(headers: RawHeaders, document: unknown): ReshapedResponse {
  return withBody(headers, JSON.stringify(document));
}

/** A response with another JSON body, without the headers that describe the previous body. */
export function withBody(headers: RawHeaders, text: string): ReshapedResponse {
  const body = Buffer.from(text);
  const kept = filterHeaders(headers, (name) => !BODY_HEADERS.test(name));
  const type = headerOf(headers, 'content-type') ?? '';
  const own = [
    'Content-Type',
    JSON_TYPES.test(type) ? type : JSON_TYPE,
    'Content-Length',
    String(body.length),
    'Cache-Control',
    'no-store',
  ];
  return { headers: [...kept, ...own], body };
}

/** The note that accompanies a card: the state of its signatures, and interfaces that are not the service. */
export function cardNote({ skipped: left, isSigned }: LocalCard): string {
  const parts = [
    'rewritten',
    ...(isSigned ? ['signature=verified'] : []),
    ...(left.length > 0 ? [`left-out=${left.length}`] : []),
  ];
  return parts.join('; ');
}

/**
 * The response with the local form of its card. Null for responses without a card, which are forwarded unchanged.
 * @param note receives the note for the card
 * @throws SvcError `bad_card`, `connect_failed`
 */
export async function withLocalCard(
  answer: ReadResponse,
  question: CardRequestKind,
  place: ResponsePlace,
  lead: LocalizeCard,
  note: (text: string) => void,
): Promise<ReshapedResponse | null> {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) {
    try {
      checkRedirect(headers, question, place);
    } catch (error) {
      answer.body.destroy();
      throw error;
    }
    return null;
  }
  // Clients fail on other statuses, and read a card for each of these.
  if (status >= 300 || BODILESS_STATUSES.has(status)) return null;
  const document = readCard(await collect(answer));
  if (question === 'document') {
    const local = await lead(document);
    note(cardNote(local));
    return answered(headers, local.card);
  }
  const { result } = document;
  if (!isObject(result)) {
    if (isObject(document['error']) && result === undefined) return answered(headers, document);
    throw badCard('not_a_card', 'the response contains no card');
  }
  const local = await lead(result);
  note(cardNote(local));
  return answered(headers, { ...document, result: local.card });
}
