/**
 * Webhooks at a local address: requests get a URL that the agent's server can call in place of the local webhook URL,
 * and responses get the local one back. See docs/push.md.
 */
import type { IncomingMessage } from 'node:http';
import { createParser } from 'eventsource-parser';
import { headerOf, isEventStream, isJsonType, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { CallResponse } from '../../capabilities/calls/http-caller.ts';
import type { PushOrigin } from '../../capabilities/push/types.ts';
import { localWebhook } from '../../capabilities/push/webhook-address.ts';
import type { Webhooks } from '../../capabilities/push/webhooks.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject, readJson } from '../../foundation/json.ts';
import { readBytes } from '../rest/json-body.ts';
import type { RemoteCaller, ReshapedResponse } from '../rest/remote-call.ts';
import { cardRequestHeaders, withBody } from './cards.ts';
import {
  parseWebhookRequest,
  type WebhookRequest,
  webhookRequestByPath,
  withTexts,
  withWebhooks,
} from './webhook-requests.ts';

// Detects whether a server rejected a request. HTTP has a status for that. JSON-RPC has status 200, possibly with a
// long response or an event stream, which is inspected while it passes.

/** Longest error, bytes, or characters of an event. A longer response is a result. */
const MAX_REFUSAL_BYTES: number = 64 * 1024;

/** True for a JSON-RPC error response. */
function isErrorAnswer(text: string): boolean {
  const answer = readJson(text);
  return isObject(answer) && answer['error'] !== undefined && answer['result'] === undefined;
}

/**
 * Calls `refused` if a response is an error; for a stream its first event decides. The response passes unchanged, and
 * its consumer must resume it.
 */
export function onRefused({ status, headers, body }: CallResponse, refused: () => void): void {
  if (status >= 400) return refused();
  const type = headerOf(headers, 'content-type');
  const isStream = isEventStream(type);
  if (!isStream && !isJsonType(type)) return;
  const decoder = new TextDecoder();
  let text = '';
  let isDecided = false;
  const leave = (): void => {
    body.off('data', take).off('end', ended);
  };
  const decide = (answer: string): void => {
    leave();
    if (!isDecided && isErrorAnswer(answer)) refused();
    isDecided = true;
  };
  const ended = (): void => decide(text);
  const parser = createParser({
    maxBufferSize: MAX_REFUSAL_BYTES,
    onEvent: ({ data }) => decide(data),
    onError: leave,
  });
  const take = (chunk: Buffer): void => {
    const part = decoder.decode(chunk, { stream: true });
    if (isStream) return parser.feed(part);
    text += part;
    if (text.length > MAX_REFUSAL_BYTES) leave();
  };
  // Attached before any other reader, so that no chunk is missed.
  body.pause().on('data', take).once('end', ended);
}

/** Largest response with configurations, bytes. */
const MAX_CONFIG_ANSWER_BYTES: number = 2 * 1024 * 1024;

export type PushRegistry = Pick<Webhooks, 'register' | 'findByUrl' | 'remove'>;

/** A request for the agent, and the handling of its response. */
export interface WebhookHandling {
  /** The replacement body. Null to send the original one, or none. */
  readonly body: Buffer | null;
  /** The response is inspected, so it must not be encoded. */
  readonly isRead: boolean;
  readonly reshape: (answer: CallResponse) => Promise<ReshapedResponse | null>;
}

export interface PushParts {
  readonly registry: PushRegistry;
  readonly caller: RemoteCaller;
  readonly origin: PushOrigin;
  readonly isBrowser: boolean;
  /** The headers for the agent. */
  readonly headers: RawHeaders;
  readonly signal: AbortSignal;
}

/**
 * The webhook handling of a request. Null if it is not about webhooks.
 * @param body the buffered body, or null
 * @throws SvcError as `Webhooks.register`; `forbidden_origin` for pages in browsers
 */
export async function handleWebhooks(
  request: IncomingMessage,
  body: Buffer | null,
  parts: PushParts,
): Promise<WebhookHandling | null> {
  const text = body?.toString('utf8') ?? '';
  const question = body === null ? webhookRequestByPath(request) : parseWebhookRequest(request, text);
  if (question?.kind === 'names') return await naming(text, question, parts);
  // Pages must not read the URLs of local webhooks, or delete them.
  if (parts.isBrowser) return null;
  switch (question?.kind) {
    case 'reads':
      return { body: null, isRead: true, reshape: (answer) => withOwnWebhooks(answer, parts) };
    case 'takesBack':
      return await takingBack(request, question.before, parts);
    default:
      return null;
  }
}

async function naming(
  text: string,
  { isAnswered, purpose }: WebhookRequest & { readonly kind: 'names' },
  parts: PushParts,
): Promise<WebhookHandling> {
  const { registry, origin, isBrowser, signal } = parts;
  const named = new Set<string>();
  withWebhooks(text, (address) => {
    if (localWebhook(address) !== null) named.add(address);
    return null;
  });
  // A page of the agent could otherwise make this machine post to any local port.
  if (isBrowser && named.size > 0) throw new SvcError('forbidden_origin');
  const places = new Map<string, string>();
  const fresh: string[] = [];
  for (const address of named) {
    const registered = await registry.register(origin, address, purpose, signal);
    if (registered === null) continue;
    places.set(address, registered.address);
    if (registered.isNew) fresh.push(registered.name);
  }
  const isShown = isAnswered && !isBrowser;
  const body = places.size === 0 ? null : Buffer.from(withWebhooks(text, (address) => places.get(address) ?? null));
  const withdraw = (): void => {
    for (const name of fresh) endIfThere(registry, name);
  };
  const reshape = async (answer: CallResponse): Promise<ReshapedResponse | null> => {
    const reshaped = isShown ? await withOwnWebhooks(answer, parts) : null;
    if (reshaped === null) {
      if (fresh.length > 0) onRefused(answer, withdraw);
    } else if (isRefused(answer, reshaped)) withdraw();
    return reshaped;
  };
  return { body, isRead: isShown || fresh.length > 0, reshape };
}

/** True if a server rejected a request. */
function isRefused({ status }: CallResponse, reshaped: ReshapedResponse | null): boolean {
  return status >= 400 || (reshaped !== null && isErrorAnswer(reshaped.body.toString('utf8')));
}

/** The webhook may have been deleted since then. */
function endIfThere(registry: PushRegistry, name: string): void {
  try {
    registry.remove(name);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
  }
}

/** The JSON text of a response. Null for other responses, which stay unread. */
async function jsonOf({ status, headers, body }: CallResponse): Promise<string | null> {
  const type = headerOf(headers, 'content-type');
  if (!isJsonType(type) || status === 204 || status === 205 || status >= 300) return null;
  return (await readBytes(body, MAX_CONFIG_ANSWER_BYTES)).toString('utf8');
}

/** A response with the local webhook URLs. Null if it contains none. */
async function withOwnWebhooks(
  answer: CallResponse,
  { registry, origin }: PushParts,
): Promise<ReshapedResponse | null> {
  const text = await jsonOf(answer);
  if (text === null) return null;
  if (readJson(text) === undefined) return withBody(answer.headers, text);
  const own = withTexts(text, (_, value) => registry.findByUrl(origin.id, value)?.url ?? null);
  return withBody(answer.headers, own);
}

/** Finds the webhook that a program deletes, and ends it after the server deleted it. */
async function takingBack(request: IncomingMessage, before: string | null, parts: PushParts): Promise<WebhookHandling> {
  const { registry } = parts;
  const names = await namesIn(request, before, parts);
  const reshape = async (answer: CallResponse): Promise<ReshapedResponse | null> => {
    const json = names.length === 0 ? null : await jsonOf(answer);
    const reshaped = json === null ? null : withBody(answer.headers, json);
    if (!isRefused(answer, reshaped)) for (const name of names) endIfThere(registry, name);
    return reshaped;
  };
  return { body: null, isRead: true, reshape };
}

async function namesIn({ url = '/' }: IncomingMessage, before: string | null, parts: PushParts): Promise<string[]> {
  const { registry, caller, origin, headers, signal } = parts;
  const { localAid, remoteAid, accessToken } = origin;
  const body = before === null ? null : Buffer.from(before);
  const asked = { method: before === null ? 'GET' : 'POST', path: url, headers: cardRequestHeaders(headers), body };
  const answer = await caller.request(localAid, remoteAid, { ...asked, accessToken, signal });
  const json = await jsonOf(answer);
  answer.body.destroy();
  const names: string[] = [];
  if (json === null || readJson(json) === undefined) return names;
  withTexts(json, (_, value) => {
    const webhook = registry.findByUrl(origin.id, value);
    if (webhook !== null) names.push(webhook.name);
    return null;
  });
  return names;
}
