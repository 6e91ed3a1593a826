/**
 * The cards of A2A agents at a local address: where they are asked for, and how an answer with one is handed on. The
 * addresses in a card are those that its server knows itself by; followed as they are, they lead past this address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { filterHeaders, headerOf, pairs, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { CallAnswer } from '../../capabilities/calls/http-caller.ts';
import type { LocalCard } from '../../capabilities/cards/admission.ts';
import { badCard } from '../../foundation/cards/bad-card.ts';
import { type Card, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { CollectedBytes } from '../../foundation/collected-bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import type { Reshaped } from '../rest/remote-call.ts';
import { type AnswerPlace, rewriteLocation } from '../rest/remote-headers.ts';

/** Largest request of JSON-RPC that may ask for a card, bytes: it holds a method and an id. */
const MAX_ASKING_BYTES = 4096;
/** Where cards are: the public one, and the one for those who log in (HTTP+JSON of 0.3 and of 1.0). */
const CARD_PATHS = [
  /\/\.well-known\/agent(?:-card)?\.json$/,
  /\/(?:extendedAgentCard|agent\/authenticatedExtendedCard)$/,
  /\/v1\/card$/,
];
/** Methods of JSON-RPC that answer with a card, in 1.0 and in 0.3. */
const CARD_METHODS: ReadonlySet<unknown> = new Set(['GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard']);
/** Would have the server send less than the card, or its bytes in another form. */
const NOT_ASKED = /^(?:accept-encoding|if-.*|range)$/;
/** Speak of the bytes that the server sent. */
const OF_ITS_BYTES =
  /^(?:accept-ranges|cache-control|content-(?:digest|encoding|length|md5|range|type)|digest|etag|expires|last-modified|repr-digest|signature(?:-input)?|trailer)$/;
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 205]);
const JSON_TYPE = 'application/json';
/** What a server may call its JSON; the bytes are UTF-8. */
const JSON_TYPES = /^application\/(?:[\w.-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

/** How a card is asked for: as a document, or by a call of JSON-RPC. */
export type CardQuestion = 'document' | 'call';

/** True for the path of a card. */
function isCardPath(path: string): boolean {
  const [bare = ''] = path.split('?', 1);
  return CARD_PATHS.some((pattern) => pattern.test(bare));
}

/** True where a request asks for the document of a card. */
export function asksForCard({ method, url = '' }: IncomingMessage): boolean {
  return method === 'GET' && isCardPath(url);
}

/** True for a call of JSON-RPC that answers with a card, alone or among others. */
export function isCardCall(body: Uint8Array): boolean {
  if (body.length > MAX_ASKING_BYTES) return false;
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

/** The headers with which a card is asked for: all of it, and as it is. */
export function askedForCard(raw: RawHeaders): string[] {
  return [...filterHeaders(raw, (name) => !NOT_ASKED.test(name)), 'Accept-Encoding', 'identity'];
}

async function collect({ body }: CallAnswer): Promise<Uint8Array> {
  const bytes = new CollectedBytes(MAX_CARD_BYTES);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>)
      if (!bytes.add(chunk)) throw badCard('too_large', `it is over ${MAX_CARD_BYTES} bytes`);
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw new SvcError('connect_failed', { message: 'The answer broke off before its end.', cause });
  } finally {
    body.destroy();
  }
  return bytes.bytes();
}

/** A redirect leads to another place of cards here, where what is found is looked at too. */
function checkRedirect(headers: RawHeaders, question: CardQuestion, place: AnswerPlace): void {
  const at = headers.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'location');
  const location = at < 0 ? null : rewriteLocation(headers[at + 1] ?? '', place);
  if (location !== null && location.startsWith('/') && (question === 'call' || isCardPath(location))) return;
  throw badCard('foreign_address', 'the agent sends on to another address for it');
}

/** Why a service cannot show its card itself, where it may have one all the same. */
const AWAY: ReadonlySet<string> = new Set([
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

/** True where what the agent has signed stands in for the public card that its service would show if it were there. */
export function isStandIn(request: IncomingMessage, error: unknown): boolean {
  const isPublic = asksForCard(request) && /\/\.well-known\//.test(request.url ?? '');
  return isPublic && error instanceof SvcError && AWAY.has(error.code);
}

/** Answers with a card that no service sent. */
export function sendLocalCard(response: ServerResponse, { card }: LocalCard): void {
  const { headers, body } = answered([], card);
  for (const [name, value] of pairs(headers)) response.setHeader(name, value);
  response.end(body);
}

/** Brings a card into its local form. */
export type LeadCard = (card: Card) => Promise<LocalCard>;

function answered(headers: RawHeaders, document: unknown): Reshaped {
  return withBody(headers, JSON.stringify(document));
}

/** An answer with another body, which is JSON in UTF-8 as well, and without what its headers said of the one before. */
export function withBody(headers: RawHeaders, text: string): Reshaped {
  const body = Buffer.from(text);
  const kept = filterHeaders(headers, (name) => !OF_ITS_BYTES.test(name));
  const said = headerOf(headers, 'content-type');
  const own = [
    'Content-Type',
    JSON_TYPES.test(said) ? said : JSON_TYPE,
    'Content-Length',
    String(body.length),
    'Cache-Control',
    'no-store',
  ];
  return { headers: [...kept, ...own], body };
}

/** What is said of a card beside it: what became of its signatures, and of interfaces that are not the service. */
export function cardNote({ left, isSigned }: LocalCard): string {
  const parts = [
    'rewritten',
    ...(isSigned ? ['signature=verified'] : []),
    ...(left.length > 0 ? [`left-out=${left.length}`] : []),
  ];
  return parts.join('; ');
}

/**
 * The answer to a question for a card with the card's local form in it; null for answers that hold none, which are
 * handed on as they are.
 * @param note is told what is said beside the card
 * @throws SvcError `bad_card`, `connect_failed`
 */
export async function withLocalCard(
  answer: CallAnswer,
  question: CardQuestion,
  place: AnswerPlace,
  lead: LeadCard,
  note: (text: string) => void,
): Promise<Reshaped | null> {
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
  // Clients throw on other statuses, and read a card from all of these.
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
    throw badCard('not_a_card', 'the answer holds none');
  }
  const local = await lead(result);
  note(cardNote(local));
  return answered(headers, { ...document, result: local.card });
}
