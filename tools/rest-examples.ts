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
  '@context': 'https://www.w3.org/ns/did/v1',
  'fetch.headers': 'text/plain',
  'chat.note': 'Hello',
  'results.metadata': 'de',
  'hosts.file': '/home/me/.claude.json',
  'hosts.name': 'claude',
  'hosts.title': 'Claude Code',
  'left_out.protocol_binding': 'JSONRPC',
  'not_direct.text': 'a better path is being looked for',
  'entries.refused': 'access_denied',
  'entries.ref': '9f'.repeat(32),
  access_token: 'a-secret',
  authentication: `${DID}#0`,
  assertionMethod: `${DID}#0`,
  capabilityDelegation: `${DID}#0`,
  capabilityInvocation: `${DID}#0`,
  keyAgreement: `${DID}#1`,
  publicKeyMultibase: 'z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG',
  serviceEndpoint: 'svc://',
  secret: 'k7m2p9q4',
  svcd_version: '1.4.0',
  pageToken: '10',
  card: '{"name":"Translator"}',
  token: 'p3q8r2',
  'Agent.name': 'Translator',
  'Evidence.enabled': true,
  'Profile.name': 'Translator',
  'addresses.address': '192.0.2.7:4122',
  'agentsList.next_cursor': 'b2',
  'attachments.name': 'report.pdf',
  'last_error.code': 'connect_failed',
  'last_error.message': 'The remote node cannot be reached.',
  'last_refused.reason': 'access_denied',
  'lines.component': 'dht',
  'lines.message': 'joined the network',
  'nodeStop.pid': 812,
  'services.name': 'Translator',
  'webhooks.url': 'http://127.0.0.1:8080/hook',
  'LocalAddress.url': 'http://127.0.0.1:40123',
  address: '192.0.2.7:4121',
  aliases: 'bob',
  card_hash: '9f'.repeat(32),
  component: 'dht',
  code: 'k7m2p9',
  cursor: 'b2',
  id: 'h4k8',
  identity: DID,
  issued_at: 1_767_225_600,
  expires_at: 1_798_761_600,
  label: 'bob',
  message_id: '9f'.repeat(32),
  next_cursor: 'b2',
  object_id: '9f'.repeat(32),
  reason: 'access_denied',
  source: 'https://example.com',
  tcp_error: 'ECONNREFUSED',
  tcp_ms: 0.5,
  type: 'application/json',
  url: 'http://127.0.0.1:40123/',
  capabilities: 'lang.translate',
  specVersion: '1.0',
  origin_id: 'h4k8',
  addresses: '192.0.2.7:4121',
  after_ms: 250,
  api_token: 'a-token-of-at-least-22-characters',
  body: BASE64,
  brief: 'Translates German to English',
  by: '192.0.2.7:4121',
  bytes_down: 52_110,
  bytes_up: 48_230,
  contact: '192.0.2.7:4121',
  contacts: '192.0.2.7:4121',
  current_version: '1.4.0',
  data_dir: '/home/me/.svcd',
  description: 'Translates German to English',
  dest: 'report.pdf',
  displayName: 'Translator',
  endpoints: 'quic://192.0.2.7:4122',
  external: '203.0.113.5:4122',
  files_root: '/home/me/.svcd/files',
  helpers: '192.0.2.9:4122',
  hint: 'Set the clock and turn NTP on.',
  identifier: `urn:air:${DID}:a2a`,
  idle_timeout_sec: 600,
  invitation: `svc://${AID}/join/AbCd`,
  last_error: 'The peer closed the connection.',
  latest_version: '1.5.0',
  link: `svc://${AID}/groups/9f9f#secret`,
  listen: '127.0.0.1:40123',
  listen_addrs: '0.0.0.0:4121',
  local_port: 40_123,
  mapped_addrs: '203.0.113.5:4122',
  message: 'The report you asked for',
  method: 'GET',
  modalities: 'text',
  name: 'report.pdf',
  nat_type_label: 'restricted',
  network: 'family',
  node_key: '9f'.repeat(32),
  note: 'dials the published address',
  observed_addrs: '203.0.113.5:4122',
  overridden: 'api_addr',
  path: '/',
  pid: 812,
  port: 40_123,
  protocols: 'a2a',
  published_endpoints: 'quic://192.0.2.7:4122',
  relays: '192.0.2.9:4122',
  remote_addr: '192.0.2.7:4122',
  restart_required: 'listen_addr',
  rtt_ms: 12.5,
  seen_as: '203.0.113.5:4122',
  service: 'lang.translate',
  service_before: '',
  service_tcp: 'http://127.0.0.1:8080',
  services: 'lang.translate',
  size: 1024,
  skill: 'translate',
  skills: 'translate',
  tags: 'german',
  text: 'Hello',
  title: 'Plans',
  to: '192.0.2.7:4122',
  tool: 'svc_status',
  tools: 'svc_status',
  ttl: 3600,
  tunnel: '127.0.0.1:40123',
  update_state: 'idle',
  uptime_s: 3600,
  version: '1.4.0',
  warning: 'Keep the key safe.',
  what: 'the clock of this machine is 90 s ahead of 3 nodes',
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

/**
 * A value that matches a schema, with all members, optional ones included.
 * @param isShort true if a list of this schema is left empty
 */
export function exampleOf(schema: Schema, isShort: (schema: Schema) => boolean = () => false, key = ''): unknown {
  const { type, anyOf, items, properties, patternProperties } = schema;
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const first: unknown = Array.isArray(anyOf) ? anyOf[0] : undefined;
  if (isObject(first)) return exampleOf(first, isShort, key);
  if (type === 'array') return isObject(items) && !isShort(items) ? [exampleOf(items, isShort, key)] : [];
  if (type === 'boolean') return true;
  if (isObject(properties))
    return Object.fromEntries(
      Object.entries(properties).flatMap(([name, member]) =>
        isObject(member) ? [[name, exampleOf(member, isShort, `${key.split('.').at(-1)}.${name}`)]] : [],
      ),
    );
  if (isObject(patternProperties)) {
    const [of] = Object.values(patternProperties);
    return isObject(of) && of['type'] !== undefined ? { [RECORD_KEYS[key] ?? AID]: exampleOf(of, isShort, key) } : {};
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
  fileOffer: ['message'],
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
  const example = exampleOf(shown, () => false, key);
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

/** JSON with short objects and lists on one line. */
export function jsonText(value: unknown, indent = '', width = 100): string {
  const flat = flatText(value);
  if (indent.length + flat.length <= width || !isObject(value)) {
    if (!Array.isArray(value) || indent.length + flat.length <= width) return flat;
    if (value.length === 1 && isObject(value[0])) return `[${jsonText(value[0], indent, width)}]`;
    const items = value.map((item) => `${indent}  ${jsonText(item, `${indent}  `, width)}`);
    return `[\n${items.join(',\n')}\n${indent}]`;
  }
  const inner = `${indent}  `;
  const lines: string[] = [];
  let line = '';
  for (const [name, member] of Object.entries(value)) {
    const shown = `${JSON.stringify(name)}:${jsonText(member, inner, width)}`;
    if (line !== '' && (shown.includes('\n') || inner.length + line.length + shown.length + 2 > width)) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? shown : `${line}, ${shown}`;
    if (shown.includes('\n')) {
      lines.push(line);
      line = '';
    }
  }
  if (line !== '') lines.push(line);
  return `{\n${lines.map((one) => inner + one).join(',\n')}\n${indent}}`;
}

function flatText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flatText).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}:${flatText(member)}`)
    .join(', ')}}`;
}
