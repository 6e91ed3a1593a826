/**
 * Webhooks at a local address: in what a program sends, the address of its webhook becomes one that the agent's server can
 * call; in what it gets back, that becomes its own again. See docs/push.md.
 */
import type { IncomingMessage } from 'node:http';
import { headerOf, isJsonType, type RawHeaders } from '../../capabilities/calls/headers.ts';
import type { CallAnswer } from '../../capabilities/calls/http-caller.ts';
import type { PushOrigin } from '../../capabilities/push/types.ts';
import { ownWebhook } from '../../capabilities/push/webhook-address.ts';
import type { Webhooks } from '../../capabilities/push/webhooks.ts';
import { SvcError } from '../../foundation/errors.ts';
import { readJson } from '../../foundation/json.ts';
import { readBytes } from '../rest/json-body.ts';
import type { RemoteCaller, Reshaped } from '../rest/remote-call.ts';
import { askedForCard, withBody } from './cards.ts';
import { withTexts } from './json-texts.ts';
import { bodilessQuestion, type PushQuestion, pushQuestion, withWebhooks } from './push-questions.ts';
import { isErrorAnswer, whenRefused } from './refused-answer.ts';

/** Largest answer with configurations in it, bytes. */
const MAX_CONFIG_ANSWER_BYTES: number = 2 * 1024 * 1024;

export type PushRegistry = Pick<Webhooks, 'register' | 'behind' | 'end'>;

/** A request as the agent gets it, and what becomes of its answer. */
export interface PushStep {
  /** The body in place of the one that came; null where that one, or none, is sent. */
  readonly body: Buffer | null;
  /** The answer is looked into, so it has to come as it is. */
  readonly isRead: boolean;
  readonly reshape: (answer: CallAnswer) => Promise<Reshaped | null>;
}

export interface PushParts {
  readonly registry: PushRegistry;
  readonly caller: RemoteCaller;
  readonly origin: PushOrigin;
  readonly isBrowser: boolean;
  /** The headers that go to the agent. */
  readonly headers: RawHeaders;
  readonly signal: AbortSignal;
}

/**
 * What webhooks ask of a request; null where it has nothing to do with them.
 * @param body what was read of it; null where nothing was
 * @throws SvcError as `Webhooks.register`; `forbidden_origin` for pages of browsers
 */
export async function pushStep(
  request: IncomingMessage,
  body: Buffer | null,
  parts: PushParts,
): Promise<PushStep | null> {
  const text = body?.toString('utf8') ?? '';
  const question = body === null ? bodilessQuestion(request) : pushQuestion(request, text);
  if (question?.kind === 'names') return await naming(text, question, parts);
  // Nor does a page learn where webhooks of programs here are, which no agent is told, or end them.
  if (parts.isBrowser) return null;
  switch (question?.kind) {
    case 'asks':
      return { body: null, isRead: true, reshape: (answer) => withOwnWebhooks(answer, parts) };
    case 'takesBack':
      return await takingBack(request, question.before, parts);
    default:
      return null;
  }
}

async function naming(
  text: string,
  { isAnswered, purpose }: PushQuestion & { readonly kind: 'names' },
  parts: PushParts,
): Promise<PushStep> {
  const { registry, origin, isBrowser, signal } = parts;
  const named = new Set<string>();
  withWebhooks(text, (address) => {
    if (ownWebhook(address) !== null) named.add(address);
    return null;
  });
  // A page of the agent would have this machine post what the agent likes to whatever listens here.
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
  const reshape = async (answer: CallAnswer): Promise<Reshaped | null> => {
    const reshaped = isShown ? await withOwnWebhooks(answer, parts) : null;
    if (reshaped === null) {
      if (fresh.length > 0) whenRefused(answer, withdraw);
    } else if (isRefused(answer, reshaped)) withdraw();
    return reshaped;
  };
  return { body, isRead: isShown || fresh.length > 0, reshape };
}

/** True where a server did not take what it was told. */
function isRefused({ status }: CallAnswer, reshaped: Reshaped | null): boolean {
  return status >= 400 || (reshaped !== null && isErrorAnswer(reshaped.body.toString('utf8')));
}

/** It may have ended meanwhile: with the local address, or by hand. */
function endIfThere(registry: PushRegistry, name: string): void {
  try {
    registry.end(name);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
  }
}

/** The text of an answer that holds JSON; null for any other, which is untouched then. */
async function jsonOf({ status, headers, body }: CallAnswer): Promise<string | null> {
  const type = headerOf(headers, 'content-type');
  if (!isJsonType(type) || status === 204 || status === 205 || status >= 300) return null;
  return (await readBytes(body, MAX_CONFIG_ANSWER_BYTES)).toString('utf8');
}

/** An answer in which the webhooks have their own addresses; null where it holds none. */
async function withOwnWebhooks(answer: CallAnswer, { registry, origin }: PushParts): Promise<Reshaped | null> {
  const text = await jsonOf(answer);
  if (text === null) return null;
  if (readJson(text) === undefined) return withBody(answer.headers, text);
  const own = withTexts(text, (_, value) => registry.behind(origin.id, value)?.url ?? null);
  return withBody(answer.headers, own);
}

/** Asks which webhook it is that a program takes back, and ends it once the server has let go of it. */
async function takingBack(request: IncomingMessage, before: string | null, parts: PushParts): Promise<PushStep> {
  const { registry } = parts;
  const names = await namesIn(request, before, parts);
  const reshape = async (answer: CallAnswer): Promise<Reshaped | null> => {
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
  const asked = { method: before === null ? 'GET' : 'POST', path: url, headers: askedForCard(headers), body };
  const answer = await caller.request(localAid, remoteAid, { ...asked, accessToken, signal });
  const json = await jsonOf(answer);
  answer.body.destroy();
  const names: string[] = [];
  if (json === null || readJson(json) === undefined) return names;
  withTexts(json, (_, value) => {
    const webhook = registry.behind(origin.id, value);
    if (webhook !== null) names.push(webhook.name);
    return null;
  });
  return names;
}
