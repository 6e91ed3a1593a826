/**
 * Recognizes A2A requests about webhooks, in 1.0 and in 0.3, over JSON-RPC and HTTP+JSON: requests that register a
 * webhook, requests whose response contains one, and requests that delete one.
 */
import type { IncomingMessage } from 'node:http';
import { isObject, memberOf, readJson } from '../../foundation/json.ts';

// Replaces single strings in a JSON document and leaves every other byte unchanged, including long numbers.

/** The path of a string: member names separated by `/`, and `[]` for list items; see `TOO_LONG`. */
type Change = (path: string, value: string) => string | null;

/** Longest path that is reported, characters: names can be as long as the document. */
const MAX_REPORTED_PATH_CHARS = 256;
/** Replaces a longer path. */
const TOO_LONG = '…';

const STRING = /"(?:[^"\\]|\\.)*"/y;
const OTHER = /[^"[\]{},:]+/y;

/** An open object or list. */
interface Open {
  readonly isList: boolean;
  readonly path: string;
  /** The name whose value comes next, or null if a name comes next. */
  name: string | null;
}

function below({ isList, path, name }: Open): string {
  const step = isList ? '[]' : (name ?? '');
  if (path === TOO_LONG || path.length + step.length > MAX_REPORTED_PATH_CHARS) return TOO_LONG;
  return path === '' ? step : `${path}/${step}`;
}

/**
 * A JSON text with some strings replaced. Member names do not change.
 * @param json valid JSON
 * @param change returns the new string, or null to keep it
 */
export function withTexts(json: string, change: Change): string {
  const open: Open[] = [];
  const parts: string[] = [];
  let kept = 0;
  for (let at = 0; at < json.length; ) {
    const top = open.at(-1);
    const char = json[at];
    const pattern = char === '"' ? STRING : OTHER;
    pattern.lastIndex = at;
    if (char === '{' || char === '[') {
      const path = top === undefined ? '' : below(top);
      open.push({ isList: char === '[', path, name: null });
    } else if (char === '}' || char === ']') open.pop();
    else if (char === ',') {
      if (top !== undefined) top.name = null;
    } else if (char === '"' && pattern.test(json)) {
      const value = textOf(json.slice(at, pattern.lastIndex));
      if (top !== undefined && !top.isList && top.name === null) top.name = value;
      else {
        const changed = change(top === undefined ? '' : below(top), value);
        if (changed !== null) {
          parts.push(json.slice(kept, at), JSON.stringify(changed));
          kept = pattern.lastIndex;
        }
      }
      at = pattern.lastIndex;
      continue;
    } else if (pattern.test(json)) {
      at = pattern.lastIndex;
      continue;
    }
    at++;
  }
  return parts.join('') + json.slice(kept);
}

function textOf(literal: string): string {
  if (!literal.includes('\\')) return literal.slice(1, -1);
  const value: unknown = JSON.parse(literal);
  return typeof value === 'string' ? value : '';
}

const [QUOTE, BACKSLASH, SPACE] = [0x22, 0x5c, 0x20];
const OPENERS: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSERS: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Parses JSON in parts: true once its first list or object is complete, and immediately for other values. */
export function isFirstValueOver(): (part: Uint8Array) => boolean {
  let depth = 0;
  let isOver = false;
  let isText = false;
  let isEscaped = false;
  return (part) => {
    for (const byte of part) {
      if (isOver) break;
      if (isEscaped) isEscaped = false;
      else if (isText && byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE && depth > 0) isText = !isText;
      else if (isText) continue;
      else if (OPENERS.has(byte)) depth++;
      else if (CLOSERS.has(byte)) isOver = --depth <= 0;
      else if (depth === 0 && byte > SPACE) isOver = true;
    }
    return isOver;
  };
}

/** Longest stored purpose, characters: two IDs. */
const MAX_PURPOSE_CHARS = 512;

/** JSON-RPC methods that send a message, which may register a webhook. */
const SENDING: ReadonlySet<unknown> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'message/send',
  'message/stream',
]);
/** Methods for configurations with a webhook. */
const CONFIGURING: ReadonlySet<unknown> = new Set([
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
]);
/** Methods that delete a configuration, and the methods that show it first. */
const DELETING: ReadonlyMap<unknown, string> = new Map([
  ['DeleteTaskPushNotificationConfig', 'GetTaskPushNotificationConfig'],
  ['tasks/pushNotificationConfig/delete', 'tasks/pushNotificationConfig/get'],
]);

const SENDING_PATH = /\/message(?::|%3A)(?:send|stream)$/i;
const CONFIG_PATH = /\/tasks\/([^/]+)\/pushNotificationConfigs(?:\/[^/]+)?$/;
/** Member names on the path to a webhook URL, in the parameters of a call or in the body of HTTP+JSON. */
const STEP = /^(?:config|configuration|(?:task_?)?push_?notification(?:_?config)?)$/i;
const ADDRESS = /^(?:(?:config|configuration|(?:task_?)?push_?notification(?:_?config)?)\/)*url$/i;
/** Occurs in every request about webhooks that its path does not identify. Letters may be escaped. */
const HINT = /otification|\\u00[4-7]/i;

/** The subject of a request. */
export type WebhookRequest =
  /**
   * It may register webhooks. `isAnswered`: the response contains them too. `purpose`: task and configuration, if
   * known.
   */
  | { readonly kind: 'names'; readonly isAnswered: boolean; readonly purpose: string | null }
  | { readonly kind: 'reads' }
  /** `before`: the body of the same request that shows the webhook first; null if it has no body. */
  | { readonly kind: 'takesBack'; readonly before: string | null };

function barePath({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] ?? '';
}

/** True for HTTP+JSON paths whose bodies always may contain a webhook. */
export function isPushPath(request: IncomingMessage): boolean {
  const path = barePath(request);
  return SENDING_PATH.test(path) || CONFIG_PATH.test(path);
}

/** True for possible JSON-RPC calls about webhooks, with few false positives. */
export function mayBeWebhookCall(text: string): boolean {
  return HINT.test(text);
}

/** The subject of a request without a body. Null if it is not about webhooks. */
export function webhookRequestByPath(request: IncomingMessage): WebhookRequest | null {
  if (!CONFIG_PATH.test(barePath(request))) return null;
  if (request.method === 'GET') return { kind: 'reads' };
  return request.method === 'DELETE' ? { kind: 'takesBack', before: null } : null;
}

/** The subject of a request with a body. Null if it is not about webhooks. */
export function parseWebhookRequest(request: IncomingMessage, text: string): WebhookRequest | null {
  const path = barePath(request);
  const [, task] = CONFIG_PATH.exec(path) ?? [];
  if (task === undefined && !mayBeWebhookCall(text)) return null;
  const document = readJson(text);
  // Text that is not JSON contains no webhook, and searching it could take long.
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

/** Task and configuration of parameters as one text. Null for a new task, and if the IDs are too long. */
function purposeOf(params: unknown, task = taskOf(params)): string | null {
  if (task === null) return null;
  const purpose = JSON.stringify([task, memberOf(configOf(params), 'id') ?? null]);
  return purpose.length > MAX_PURPOSE_CHARS ? null : purpose;
}

function taskOf(params: unknown): string | null {
  const ids = ['taskId', 'task_id'].flatMap((name) => [memberOf(params, name), memberOf(params, 'message', name)]);
  return ids.find((id) => typeof id === 'string' && id !== '')?.toString() ?? null;
}

/** The innermost configuration in parameters. */
function configOf(params: unknown): unknown {
  const [, inner] =
    Object.entries(isObject(params) ? params : {}).find(([name, value]) => STEP.test(name) && isObject(value)) ?? [];
  return inner === undefined ? params : configOf(inner);
}

/** Replaces the webhook URLs in a request. @param change returns null to keep a URL */
export function withWebhooks(text: string, change: (address: string) => string | null): string {
  return withTexts(text, (path, value) => {
    const place = path.replace(/^\[\]\//, '').replace(/^params\//, '');
    return ADDRESS.test(place) ? change(value) : null;
  });
}
