/** Example values for the REST page, made from the schemas of the operations table. */
import { isObject } from '../src/foundation/json.ts';

/** A schema of the table as plain JSON. */
export type Schema = Readonly<Record<string, unknown>>;

const AID = 'aid1fj66ha4d08alt2auet7vy6wctnfx28k5hzzmtp5lysdwmu99hg5spq62xc';
const ETHEREUM = '0x742d35cc6634c0532925a3b844bc454e4438f44e';
const DID = 'did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG';
const BASE64 = 'aGVsbG8=';

/** Values of members by name, if their schema is only "string" or "integer". */
const BY_NAME: Readonly<Record<string, unknown>> = {
  'chat.note': 'Hello',
  access_token: 'a-secret',
  svcd_version: '1.4.0',
  aliases: 'bob',
  code: 'k7m2p9',
  id: 'h4k8',
  issued_at: 1_767_225_600,
  expires_at: 1_798_761_600,
  message_id: '9f'.repeat(32),
  object_id: '9f'.repeat(32),
  type: 'application/json',
  brief: 'Translates German to English',
  contact: '192.0.2.7:4121',
  idle_timeout_sec: 600,
  local_port: 40_123,
  message: 'The report you asked for',
  name: 'report.pdf',
  note: 'dials the published address',
  path: '/',
  port: 40_123,
  protocols: 'a2a',
  service: 'lang.translate',
  service_tcp: 'http://127.0.0.1:8080',
  services: 'lang.translate',
  size: 1024,
  skill: 'translate',
  text: 'Hello',
  title: 'Plans',
  to: '192.0.2.7:4122',
  tool: 'svc_status',
  ttl: 3600,
};

/** Values in requests that satisfy more than the schema, by operation and member. */
const REQUEST_VALUES: Readonly<Record<string, unknown>> = {
  'addressBookPut.favorites': [],
  'catalogSearch.query': { text: 'translate German' },
  'catalogSearchBelow.query': { text: 'translate German' },
  'chatRead.after_seq': 4,
  'chatRead.wait_s': 50,
  'chatRequest.note': 'Ada, about the report',
  'groupEntries.after_seq': 4,
  'groupEntries.wait_s': 50,
  'mailboxList.wait_s': 50,
  'nodeEventsRecent.after_seq': 17,
  'cardSet.card': { name: 'Translator', description: 'German to English', url: 'http://127.0.0.1:8080' },
  'ethereumMessage.agent': ETHEREUM,
  'ethereumRegister.agent': ETHEREUM,
  'fetch.path': '/hello',
  'fileOffer.message': 'as promised',
  'filesRootSet.path': '/srv/files',
  '/docs/{file}.file': 'swagger-ui.css',
  '/panel/{file}.file': 'panel.js',
  'join.to': `svc://${AID}/join/AbCd`,
  'toolCall.args': {},
};

/** Bodies whose schema names no members. */
const BODIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = { configPatch: { log_level: 'debug' } };

/** Keys of objects that map any key to a value. Default: an AID. */
const RECORD_KEYS: Readonly<Record<string, string>> = {
  'fetch.headers': 'content-type',
  'results.metadata': 'language',
};

function fits(value: unknown, { type, minimum, maximum }: Schema): boolean {
  if (type === 'string') return typeof value === 'string';
  const isInside = (n: number): boolean => n >= Number(minimum ?? n) && n <= Number(maximum ?? n);
  return typeof value === 'number' && isInside(value) && (type !== 'integer' || Number.isInteger(value));
}

function text({ format, pattern, contentEncoding, minLength }: Schema, key: string): string {
  if (format === 'aid') return AID;
  if (format === 'service-name') return 'lang.translate';
  if (format === 'date-time') return '2030-01-31T12:00:00Z';
  if (contentEncoding === 'base64' || key.endsWith('_base64')) return BASE64;
  if (typeof pattern === 'string') {
    if (pattern.startsWith('^did:key:')) return DID;
    const digits = /\[0-9a-f\]\{(\d+)\}\$$/.exec(pattern)?.[1];
    if (digits !== undefined) return '9f'.repeat(Number(digits) / 2);
    if (key === 'kind') return 'msg';
    return /^\^\[1-9\]|^\^\\d/.test(pattern) ? '7' : 'GET';
  }
  if (key.endsWith('_hex')) return '9f'.repeat(32);
  return typeof minLength === 'number' && minLength > 8 ? 'a-long-secret-text'.padEnd(minLength, '!') : 'text';
}

/** A value that matches a schema, with all members, optional ones included. */
function exampleOf(schema: Schema, key = ''): unknown {
  const { type, anyOf, items, properties, patternProperties } = schema;
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const first: unknown = Array.isArray(anyOf) ? anyOf[0] : undefined;
  if (isObject(first)) return exampleOf(first, key);
  if (type === 'array') return isObject(items) ? [exampleOf(items, key)] : [];
  if (type === 'boolean') return true;
  if (isObject(properties))
    return Object.fromEntries(
      Object.entries(properties).flatMap(([name, member]) =>
        isObject(member) ? [[name, exampleOf(member, `${key.split('.').at(-1)}.${name}`)]] : [],
      ),
    );
  if (isObject(patternProperties)) {
    const [of] = Object.values(patternProperties);
    return isObject(of) && of['type'] !== undefined ? { [RECORD_KEYS[key] ?? AID]: exampleOf(of, key) } : {};
  }
  const name = key.slice(key.lastIndexOf('.') + 1);
  const named = BY_NAME[key] ?? BY_NAME[name];
  if (named !== undefined && schema['pattern'] === undefined && schema['format'] === undefined && fits(named, schema))
    return named;
  if (type === 'string') return text(schema, name);
  if (type === 'integer' || type === 'number')
    return Number(schema['default'] ?? Math.max(1, Number(schema['minimum'] ?? 1)));
  return type === 'null' ? null : {};
}

/** Optional members that a useful request has, by operation. */
const USEFUL: Readonly<Record<string, readonly string[]>> = {
  chatRead: ['after_seq', 'wait_s'],
  chatRequest: ['note'],
  chatSend: ['text'],
  fileOffer: ['object_id', 'message'],
  groupEntries: ['after_seq', 'wait_s'],
  mailboxList: ['wait_s'],
  nodeEventsRecent: ['after_seq'],
  profileSet: ['name', 'brief'],
  serviceRegister: ['brief'],
  toolCall: ['args'],
  tunnelOpen: ['local_port'],
};

/** The members that the example of a request has: required ones, the first alternative, and useful ones. */
function exampleMembers(schema: Schema, shown: Schema, useful: readonly string[]): ReadonlySet<unknown> {
  const first: unknown = Array.isArray(shown['oneOf']) ? shown['oneOf'][0] : undefined;
  const required = [schema, isObject(first) ? first : {}].flatMap((one): unknown[] =>
    Array.isArray(one['required']) ? one['required'] : [],
  );
  return new Set([...required, ...useful]);
}

/** An example of a part of a request. */
function partExample(schema: Schema, names: ReadonlySet<unknown>, key: string): Readonly<Record<string, unknown>> {
  const properties = Object.entries(isObject(schema['properties']) ? schema['properties'] : {});
  const shown = { ...schema, properties: Object.fromEntries(properties.filter(([name]) => names.has(name))) };
  const example = exampleOf(shown, key);
  if (!isObject(example)) return {};
  return Object.fromEntries(
    Object.entries(example).map(([name, value]) => [name, REQUEST_VALUES[`${key}.${name}`] ?? value]),
  );
}

export interface RequestParts {
  readonly name: string;
  readonly params: Schema;
  readonly query: Schema;
  readonly body: Schema;
  readonly shownBody: Schema;
}

/** The example of a request, as the parts of its input. */
export function requestExample({ name, params, query, body, shownBody }: RequestParts) {
  const useful = USEFUL[name] ?? [];
  return {
    params: partExample(params, exampleMembers(params, params, []), name),
    query: partExample(query, exampleMembers(query, query, useful), name),
    body: BODIES[name] ?? partExample(body, exampleMembers(body, shownBody, useful), name),
  };
}

/** Longer bodies are cut, characters. */
const MAX_BODY_CHARS = 300;

/** The example of a request in one line, with the body if there is one. AIDs, hashes and long bodies are cut. */
export function requestText(
  method: string,
  path: string,
  { params, query, body }: ReturnType<typeof requestExample>,
): string {
  const filled = path.replaceAll(/\{(\w+)\*?\}/g, (_, name: string) => {
    const { [name]: value } = params;
    return (typeof value === 'string' ? value : JSON.stringify(value ?? name)).replace(/^\//, '');
  });
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}=${String(one)}`),
  );
  const short = (text: string): string => text.replaceAll(AID, 'aid1…').replaceAll(/(?:9f){8,}/g, '9f9f…');
  const json = Object.keys(body).length === 0 ? '' : short(JSON.stringify(body));
  const shown = json.length > MAX_BODY_CHARS ? `${json.slice(0, json.lastIndexOf(',', MAX_BODY_CHARS))},…}` : json;
  return (
    short(`${method} ${filled}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`) + (json === '' ? '' : ` ${shown}`)
  );
}
