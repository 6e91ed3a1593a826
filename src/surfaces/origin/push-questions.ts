/**
 * Which requests of A2A speak of webhooks, in 1.0 and in 0.3, over JSON-RPC and HTTP+JSON: those that name one, those that
 * are answered with one, and those that take one back.
 */
import type { IncomingMessage } from 'node:http';
import { isObject, memberOf, readJson } from '../../foundation/json.ts';
import { withTexts } from './json-texts.ts';

/** Longest purpose that is remembered, characters: two ids. */
const MAX_PURPOSE_CHARS = 512;

/** Methods of JSON-RPC that send a message, with which a webhook may go. */
const SENDING: ReadonlySet<unknown> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'message/send',
  'message/stream',
]);
/** Methods that are about the configuration with a webhook in it. */
const CONFIGURING: ReadonlySet<unknown> = new Set([
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
]);
/** Methods that take a configuration back, and those that show it before. */
const DELETING: ReadonlyMap<unknown, string> = new Map([
  ['DeleteTaskPushNotificationConfig', 'GetTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/delete', 'tasks/pushNotificationConfig/get'],
]);

const SENDING_PATH = /\/message(?::|%3A)(?:send|stream)$/i;
const CONFIG_PATH = /\/tasks\/([^/]+)\/pushNotificationConfigs(?:\/[^/]+)?$/;
/** What leads to the address of a webhook, below the parameters of a call or in the body of HTTP+JSON. */
const STEP = /^(?:config|configuration|(?:task_?)?push_?notification(?:_?config)?)$/i;
const ADDRESS = /^(?:(?:config|configuration|(?:task_?)?push_?notification(?:_?config)?)\/)*url$/i;
/** Stands in every request that speaks of webhooks and does not say so by its path; letters may be escaped. */
const HINT = /otification|\\u00[4-7]/i;

/** What a request is about. */
export type PushQuestion =
  /** It may name webhooks. `isAnswered`: the answer names them too. `purpose`: of which task and configuration, if that is known. */
  | { readonly kind: 'names'; readonly isAnswered: boolean; readonly purpose: string | null }
  | { readonly kind: 'asks' }
  /** `before`: the body of the same request that shows what is taken back; null where it has none. */
  | { readonly kind: 'takesBack'; readonly before: string | null };

function barePath({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

/** True for the paths of HTTP+JSON whose bodies may name a webhook, whatever stands in them. */
export function isPushPath(request: IncomingMessage): boolean {
  const path = barePath(request);
  return SENDING_PATH.test(path) || CONFIG_PATH.test(path);
}

/** True for what may be a call of JSON-RPC about webhooks, and for little else. */
export function mayBePushQuestion(text: string): boolean {
  return HINT.test(text);
}

/** What a request without a body to look into is about; null for nothing of this. */
export function bodilessQuestion(request: IncomingMessage): PushQuestion | null {
  if (!CONFIG_PATH.test(barePath(request))) return null;
  if (request.method === 'GET') return { kind: 'asks' };
  return request.method === 'DELETE' ? { kind: 'takesBack', before: null } : null;
}

/** What a request with a body is about; null for nothing of this. */
export function pushQuestion(request: IncomingMessage, text: string): PushQuestion | null {
  const path = barePath(request);
  const [, task] = CONFIG_PATH.exec(path) ?? [];
  if (task === undefined && !mayBePushQuestion(text)) return null;
  const document = readJson(text);
  // What is no JSON names nothing, and has no end of texts that could be looked through in time.
  if (document === undefined) return null;
  if (SENDING_PATH.test(path)) return { kind: 'names', isAnswered: false, purpose: purposeOf(document) };
  if (task !== undefined) return { kind: 'names', isAnswered: true, purpose: purposeOf(document, task) };
  const calls: readonly unknown[] = Array.isArray(document) ? document : [document];
  const known = calls.filter(isObject);
  const deleting = known.length === 1 ? DELETING.get(known[0]?.['method']) : undefined;
  if (deleting !== undefined)
    return { kind: 'takesBack', before: withTexts(text, (at) => (at === 'method' ? deleting : null)) };
  const isAnswered = known.some(({ method }) => CONFIGURING.has(method));
  if (!isAnswered && !known.some(({ method }) => SENDING.has(method))) return null;
  return { kind: 'names', isAnswered, purpose: known.length === 1 ? purposeOf(known[0]?.['params']) : null };
}

/** Which task and configuration parameters are about, as one text; null for a task that begins, and for overlong ids. */
function purposeOf(params: unknown, task = taskOf(params)): string | null {
  if (task === null) return null;
  const purpose = JSON.stringify([task, memberOf(configOf(params), 'id') ?? null]);
  return purpose.length > MAX_PURPOSE_CHARS ? null : purpose;
}

function taskOf(params: unknown): string | null {
  const ids = ['taskId', 'task_id'].flatMap((name) => [memberOf(params, name), memberOf(params, 'message', name)]);
  return ids.find((id) => typeof id === 'string' && id !== '')?.toString() ?? null;
}

/** The configuration in parameters: the innermost of those that stand in one another. */
function configOf(params: unknown): unknown {
  const [, inner] =
    Object.entries(isObject(params) ? params : {}).find(([name, value]) => STEP.test(name) && isObject(value)) ?? [];
  return inner === undefined ? params : configOf(inner);
}

/** Changes the addresses of webhooks that a request names. @param change null leaves one */
export function withWebhooks(text: string, change: (address: string) => string | null): string {
  return withTexts(text, (path, value) => {
    const place = path.replace(/^\[\]\//, '').replace(/^params\//, '');
    return ADDRESS.test(place) ? change(value) : null;
  });
}
