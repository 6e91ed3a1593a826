/**
 * Writes docs/reference/rest.md: every route of the operations table, the shape of every response, and every error
 * code. `--check` writes nothing and fails if the page differs from the table.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { ERRORS, type ErrorCode } from '../src/foundation/errors.ts';
import { isObject } from '../src/foundation/json.ts';
import { PUBLISH_ERRORS, RESOLVE_ERRORS } from '../src/operations/directory.ts';
import { operations, streams } from '../src/operations/index.ts';
import type { Declaration, Permission } from '../src/operations/operation.ts';
import { AidText, Base64, Timestamp } from '../src/operations/schemas.ts';
import type { StreamDeclaration } from '../src/operations/stream.ts';
import { REACH_ERRORS } from '../src/operations/tunnels.ts';
import { errorCodes } from '../src/surfaces/rest/openapi.ts';
import { type Schema, shapeText } from './rest-shapes.ts';

const PAGE = new URL('../docs/reference/rest.md', import.meta.url).pathname;

/** Codes that many operations return together, under a name. */
const ERROR_GROUPS: readonly (readonly [name: string, codes: readonly ErrorCode[]])[] = [
  ['reach errors', REACH_ERRORS],
  [
    'connection errors',
    [
      'resolve_failed',
      'network_unavailable',
      'clock_wrong',
      'access_denied',
      'connect_failed',
      'timeout',
      'protocol_error',
    ],
  ],
  ['publish errors', PUBLISH_ERRORS],
  ['resolve errors', RESOLVE_ERRORS],
];

/** Codes that the page explains once for all operations. */
const COMMON: readonly ErrorCode[] = [
  'invalid_request',
  'unauthorized',
  'forbidden_host',
  'forbidden_origin',
  'rate_limited',
  'internal',
  'invalid_json',
  'too_large',
  'unsupported_media_type',
  'bad_aid',
  'ambiguous_label',
  'local_only',
];

function codeList(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `\`${code}\``).join(', ');
}

const HEAD = `# REST API

\`tools/rest-doc.ts\` writes this page. A running daemon has the same reference at \`/docs\`, and \`/openapi.json\`.

## Conventions

- The address is \`http://127.0.0.1:2121\`, or the value of \`api_addr\`.
- Paths are case-sensitive. A trailing slash makes a different path. \`HEAD\` works like \`GET\`.
- Every write (\`POST\`, \`PUT\`, \`PATCH\`, \`DELETE\`) needs \`Content-Type: application/json\`, even without a body. If no
  member is required, the body can be omitted. It can have up to 1 MiB and 64 levels, and must arrive within 30 s.
- Unknown members and unknown query keys are rejected. \`details\` of the error names the place: \`{in, path, problem}\`.
- In the query, numbers are decimal, booleans are \`true\` or \`false\`, and lists repeat the key.
- An AID is \`aid1…\`, its \`did:key:z6Mk…\`, an Ethereum \`0x…\` or a Paralism address. Responses use the canonical form.
- Requests may use a label of the address book, or the profile name of a local agent, in place of an AID. A result that
  contains AIDs with labels has a member \`labels\`: AID to label.
- Timestamps are ISO 8601 in UTC. Sizes are in bytes. \`…_ms\` is milliseconds, \`…_s\` seconds. Base64 is the standard
  alphabet (RFC 4648, section 4).
- \`{aid}\` in a path is an AID. \`{id}\` is an ID from the list operation. Hashes have 64 lower-case hex characters.
- Paged lists take \`limit\` and \`cursor\`, the \`next_cursor\` of the previous page.

The code of an operation is the shape of its response. \`name?\` is optional, and \`|\` separates alternatives. Without a
shape, a write returns \`{ok:true}\`, and \`GET\` an object without fixed members. The rows below it explain codes. \`/docs\`
describes every member.

The shape of a request has the members of query and body, with their defaults: \`count?:integer=4\`. The rows below it
explain them. An example:

\`\`\`sh
curl http://127.0.0.1:2121/agents/aid1…/chat/send -H 'content-type: application/json' -d '{"peer":"aid1…","text":"Hello"}'
\`\`\`

| Word | Meaning |
|---|---|
| \`local_aid\` | the acting local agent; required if several are registered |
| \`access_token\` | the access token for the remote agent |
| \`disable_relay\` | refuses relays for this request |
| Heartbeat | success counts as a heartbeat of the local agent |

## Access

- A request is **local** if it uses a loopback connection and its \`Host\` is a loopback name or absent.
- A loopback connection with any other \`Host\` is rejected (\`forbidden_host\`), and so is a request from a page of another
  website (\`forbidden_origin\`). Web pages cannot use the API.
- If \`api_token\` is set, requests that are not local need \`Authorization: Bearer <token>\`. With \`require_local_token\`,
  local ones need it too.
- An address that sends wrong tokens, or from another machine many requests without one, is rate-limited. A correct token
  of at least 22 characters is exempt.

## Errors

An error is \`{error:string, message:string, details?:object}\`: a code, and what failed and what to do. \`/docs\` explains
the codes of each operation. Operations list here only the codes that are special to them. Others depend on the request:

| Request | Codes |
|---|---|
| any | ${codeList(COMMON.slice(0, 6))} |
| write | ${codeList(COMMON.slice(6, 9))} |
| with an AID or a label | \`bad_aid\`, \`ambiguous_label\` |
| with \`local_aid\` | \`local_aid_required\` |
| path with parameters | \`not_found\` |
| local only | \`local_only\` |
${ERROR_GROUPS.map(([name, codes]) => `|${name}|${codeList(codes.filter((one) => !COMMON.includes(one)))}|`).join('\n')}
`;

/** A schema of the table as plain JSON. */
function plain(schema: object): Schema {
  return JSON.parse(JSON.stringify(schema)) as Schema;
}

function members(schema: Schema): [string, Schema][] {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  return Object.entries(properties).filter((pair): pair is [string, Schema] => isObject(pair[1]));
}

function variants(schema: Schema): Schema[] {
  return (Array.isArray(schema['anyOf']) ? schema['anyOf'] : []).filter(isObject);
}

function requiredOf(schema: Schema): ReadonlySet<unknown> {
  return new Set(Array.isArray(schema['required']) ? schema['required'] : []);
}

/** A shape that programs only store and send back. */
const DOCUMENT = 'Bundle';

/** Shapes of several operations, which the page describes once. */
const SHARED: ReadonlyMap<string, Schema> = new Map(
  Object.entries({
    Agent: operations.agentsList.output.properties.agents.items,
    Profile: operations.profileSet.body,
    AccessList: operations.agentGet.output.properties.acl,
    AllowEntry: operations.aclAllow.output,
    AllowRequest: operations.aclAllow.body,
    DenyEntry: operations.aclDeny.output,
    RemoteAdministration: operations.remoteAdminGet.output,
    [DOCUMENT]: operations.agentBundle.output,
    Publication: operations.agentPublish.output,
    Tunnel: operations.tunnelGet.output,
    LocalAddress: operations.originList.output.properties.origins.items,
    FileOffer: operations.fileOfferGet.output,
    Event: operations.eventsPoll.output.properties.events.items,
    Note: operations.mailboxList.output.properties.messages.items,
    GroupSummary: operations.groupHead.output,
    Update: operations.updateStatus.output,
    HubSource: operations.hubAdd.output,
    Hook: operations.hookAdd.output,
    HookDelivery: operations.hookRetry.output,
    OnDemandService: operations.onDemandSet.output,
    SignedCard: operations.cardGet.output,
    NotDirect: operations.netcheckAgent.output.properties.not_direct.anyOf[0],
    WayOut: operations.status.output.properties.exit,
    Evidence: operations.evidenceGet.output,
    AddressBook: operations.addressBookGet.output,
    Delegation: operations.ethereumProof.output,
    SearchResults: operations.catalogSearch.output,
    SearchRequest: operations.catalogSearch.body,
  }).map(([name, schema]) => [name, plain(schema)]),
);

/** The shared shape that a schema is, or has all members of; and the members that it adds. */
function sharedOf(schema: Schema): { readonly name: string; readonly more: readonly string[] } | undefined {
  if (!isObject(schema['properties'])) return undefined;
  const own = new Map(members(schema).map(([name, member]) => [name, JSON.stringify(member)]));
  for (const [name, shape] of SHARED) {
    const of = members(shape);
    if (of.length < own.size - 2 || !of.every(([key, member]) => own.get(key) === JSON.stringify(member))) continue;
    const names = new Set(of.map(([key]) => key));
    return { name, more: [...own.keys()].filter((key) => !names.has(key)) };
  }
  return undefined;
}

function link(name: string): string {
  return `[${name}](#${name.toLowerCase()})`;
}

/** Texts that the conventions of the page already give. */
const KNOWN: ReadonlySet<unknown> = new Set([
  ...[AidText, Timestamp, Base64].map((schema) => plain(schema)['description']),
  'Milliseconds.',
  'Bytes.',
]);
const EXPLAINED_ONCE: ReadonlySet<string> = new Set([
  'local_aid',
  'access_token',
  'disable_relay',
  'limit',
  'cursor',
  'next_cursor',
]);
/** Members of requests that the conventions explain completely. */
const CONVENTIONAL: ReadonlySet<string> = new Set(['local_aid', 'access_token', 'disable_relay', 'cursor']);

function meaning(schema: Schema): string {
  const { description } = schema;
  const nested = variants(schema).map(meaning).filter(Boolean);
  if (typeof description !== 'string' || KNOWN.has(description)) return nested.join(' ');
  return description;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

/** The objects inside a member, with their paths. Shared shapes are not included. */
function inside(member: Schema, path: string): [Schema, string][] {
  return [member, ...variants(member)].flatMap((part): [Schema, string][] => {
    const { items } = part;
    if (isObject(items)) return inside(items, `${path}[]`);
    return members(part).length > 0 && sharedOf(part) === undefined ? [[part, `${path}.`]] : [];
  });
}

function isPaged(schema: Schema): boolean {
  return members(schema).some(([name]) => name === 'cursor');
}

/** The size of a page. */
function pagingText(query: Schema): string {
  const limit = members(query).find(([name]) => name === 'limit')?.[1];
  if (limit === undefined || !isPaged(query)) return '';
  const { maximum, default: standard } = limit;
  return `Paged: up to ${String(maximum)}${standard === undefined ? '' : `, default ${JSON.stringify(standard)}`}.`;
}

/** Range and note of the members of a request, except of those that their shape explains. */
function requestNotes(schema: Schema, prefix = ''): Note[] {
  return members(schema).flatMap(([name, member]) => {
    if (prefix === '' && (CONVENTIONAL.has(name) || (name === 'limit' && isPaged(schema)))) return [];
    const { type, minimum, maximum } = member;
    const range = type === 'integer' && maximum !== undefined ? `${Number(minimum)} to ${Number(maximum)}` : '';
    const text = [range, EXPLAINED_ONCE.has(name) ? '' : meaning(member)].filter(Boolean).join('. ');
    const inner = inside(member, `${prefix}${name}`).flatMap(([part, path]) => requestNotes(part, path));
    return [...(text === '' ? [] : [[`${prefix}${name}`, text] as const]), ...inner];
  });
}

/** The members of query and body in one shape. */
function requestShape(parts: readonly Schema[]): string {
  const properties = Object.fromEntries(
    parts.flatMap((part) =>
      members(part).filter(([name]) => name !== 'cursor' && !(name === 'limit' && isPaged(part))),
    ),
  );
  if (isEmpty(properties)) return '';
  return shapeText({ properties, required: parts.flatMap((part) => [...requiredOf(part)]) }, nameOf);
}

function isEmpty(properties: object): boolean {
  return Object.keys(properties).length === 0;
}

/** Notes on the members of a response, as member and text. */
function responseNotes(schema: Schema, prefix = ''): Note[] {
  return members(schema).flatMap(([name, member]) => {
    const path = `${prefix}${name}`;
    const note = EXPLAINED_ONCE.has(name) ? '' : meaning(member);
    const inner = inside(member, path).flatMap(([part, to]) => responseNotes(part, to));
    return [...(note === '' ? [] : [[path, note] as const]), ...inner];
  });
}

type Note = readonly [member: string, text: string];

/** Notes on codes and secrets. `/docs` has the others. */
const OF_VALUES = /`[\w.]+`[:;]|`,.* `\w+` or |\b\d+:? [a-z]|\b(once|queued|after_seq)\b|#/;

function rowsOf(notes: readonly Note[]): string[] {
  return notes.map(([member, text]) => `|\`${member}\`|${cell(text)}|`);
}

function responseRows(schema: Schema): string[] {
  return rowsOf(responseNotes(schema).filter(([, text]) => OF_VALUES.test(text)));
}

function requestRows(schema: Schema): string[] {
  return rowsOf(requestNotes(schema));
}

/** Rows with the same text as one row, in the place of the first. */
function merged(rows: readonly string[]): string[] {
  const names = new Map<string, string[]>();
  for (const row of rows) {
    const [name = '', text = ''] = row.slice(1, -1).split(/\|(.*)/s);
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  return [...names].map(([text, of]) => `|${of.join(', ')}|${text}|`);
}

function table(title: string, rows: readonly string[]): string {
  return rows.length === 0 ? '' : `\n|${title}||\n|---|---|\n${merged(rows).join('\n')}\n`;
}

/** The name of a shared shape that has exactly these members. */
function nameOf(schema: Schema): string | undefined {
  const shared = sharedOf(schema);
  return shared === undefined || shared.more.length > 0 ? undefined : shared.name;
}

function code(shape: string): string {
  return `\n\`\`\`\n${shape}\n\`\`\`\n`;
}

/** A labeled shape, or nothing for an empty one. */
function shown(label: string, shape: string): string {
  if (shape === '') return '';
  return `\n${label}:${shape.includes('\n') ? `\n${code(shape)}` : ` \`${shape}\`\n`}`;
}

const PERMISSION: Readonly<Record<Permission, string>> = {
  read: '',
  write: '',
  local_only: 'Local only.',
  open: 'No token.',
  peer: "No token: the called agent's access list decides.",
};

function responseText(declaration: Declaration): string {
  const output = plain(declaration.output);
  const statuses = [declaration.status ?? 200, ...(declaration.otherStatuses ?? [])];
  const status = statuses.length === 1 && statuses[0] === 200 ? '' : ` ${statuses.join(' or ')}`;
  const shared = sharedOf(output);
  const note = meaning(output);
  const noteText = note === '' ? '' : `\n${note}\n`;
  if (shared !== undefined) {
    const more = shared.more.map((name) => `\`${name}\``);
    return `\nResponse${status}: ${[link(shared.name), ...more].join(', ')}.\n${noteText}`;
  }
  const shape = shapeText(output, nameOf);
  if ((shape === '{ok:true}' || shape === 'object') && status === '') return noteText;
  const notes = table('Member', responseRows(output));
  return `${status === '' && shape.includes('\n') ? code(shape) : shown(`Response${status}`, shape)}${notes}${noteText}`;
}

function errorsText(codes: readonly ErrorCode[], path = '', takesLocalAid = false): string {
  const isCommon = (one: ErrorCode): boolean =>
    COMMON.includes(one) ||
    (takesLocalAid && one === 'local_aid_required') ||
    (one === 'not_found' && path.includes('{'));
  const left = new Set(codes.filter((one) => !isCommon(one)));
  const groups = ERROR_GROUPS.filter(([, group]) => group.every((one) => left.has(one) || isCommon(one))).filter(
    ([, group], i, all) => !all.slice(0, i).some(([, other]) => group.every((one) => other.includes(one))),
  );
  for (const [, group] of groups) for (const one of group) left.delete(one);
  const shown = [...groups.map(([name]) => name), ...[...left].map((one) => `\`${one}\``)];
  return shown.length === 0 ? '' : `Errors: ${shown.join(', ')}.`;
}

/** Path parameters that the conventions do not explain. */
function pathRows(params: object): string[] {
  const schema = plain(params);
  const special = members(schema).filter(
    ([name, member]) => meaning(member) !== '' && !/^(aid|id)$|_id$/.test(name) && member['pattern'] === undefined,
  );
  return special.map(([name, member]) => `|\`{${name}}\`|${cell(meaning(member))}|`);
}

function operationText(declaration: Declaration): string {
  const { method, path, summary, permission, heartbeat, params, query, body } = declaration;
  const takesLocalAid = [plain(query), plain(body)].some((part) =>
    members(part).some(([name]) => name === 'local_aid'),
  );
  const facts = [
    summary,
    PERMISSION[permission],
    pagingText(plain(query)),
    heartbeat ? 'Heartbeat.' : '',
    errorsText(errorCodes(declaration), path, takesLocalAid),
  ];
  const shared = sharedOf(plain(body));
  const isBody = method !== 'GET' && shared !== undefined;
  const parts = [plain(query), ...(method === 'GET' || isBody ? [] : [plain(body)])];
  const own = meaning(plain(body));
  return [
    `\n### ${method} ${path}\n\n${facts.filter(Boolean).join(' ')}\n`,
    shown('Request', requestShape(parts)),
    table('Request', [...pathRows(params), ...parts.flatMap(requestRows)]),
    isBody ? `\nRequest: ${[link(shared.name), ...shared.more.map((name) => `\`${name}\``)].join(', ')}.\n` : '',
    own === '' ? '' : `\nBody: ${own}\n`,
    responseText(declaration),
  ].join('');
}

function streamText(declaration: StreamDeclaration): string {
  const { methods, path, summary, permission, params, query, produces, accepts, errors } = declaration;
  const verbs = methods === 'ANY' ? 'Any method' : methods.join(', ');
  const facts = [
    summary,
    PERMISSION[permission],
    accepts === undefined ? '' : `Body: \`${accepts}\`.`,
    `Response: \`${produces}\`.`,
    errorsText(errors, path),
  ];
  return [
    `\n### ${verbs} ${path}\n\n${facts.filter(Boolean).join(' ')}\n`,
    shown('Request', requestShape([plain(query)])),
    table('Request', [...pathRows(params), ...requestRows(plain(query))]),
  ].join('');
}

function sharedText(): string {
  const texts = [...SHARED].map(([name, schema]) => {
    if (name === DOCUMENT)
      return `\n### ${name}\n\nThe document of a [moved agent](../moving.md). \`/docs\` has its members.\n`;
    const isRequest = name === 'Profile' || name.endsWith('Request');
    const shape = shapeText(schema, (one) => (one === schema ? undefined : nameOf(one)));
    const rows = isRequest ? requestRows(schema) : responseRows(schema);
    return `\n### ${name}\n${code(shape)}${table('Member', rows)}`;
  });
  return `\n## Shared types\n${texts.join('')}`;
}

/** Notes of at least this many words are given once. */
const LONG_NOTE_WORDS = 6;

/** The page with a reference in place of each long note that an earlier row has. */
function withoutRepetition(page: string): string {
  const first = new Map<string, string>();
  let place = '';
  const lines = page.split('\n').map((line) => {
    place = /^### (.*)$/.exec(line)?.[1] ?? place;
    const [, name, text] = /^\|(`[^|]*`)\|(.*)\|$/.exec(line) ?? [];
    if (name === undefined || text === undefined || text.split(' ').length < LONG_NOTE_WORDS) return line;
    const before = first.get(text);
    if (before === undefined) first.set(text, place);
    return before === undefined || before === place ? line : `|${name}|as in \`${before}\`|`;
  });
  return lines.join('\n');
}

/** Codes with the same status and exit code in one row. */
function errorTable(): string {
  const rows = Map.groupBy(Object.entries(ERRORS), ([, { status, otherStatuses, exit }]) => {
    return `|${[status, ...otherStatuses].join(', ')}|${exit}|`;
  });
  const lines = [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([place, codes]) => `${place}${codes.map(([name]) => `\`${name}\``).join(', ')}|`);
  return `\n| Status | Exit code of \`svc\` | Codes |\n|---|---|---|\n${lines.join('\n')}\n`;
}

/** The page. */
export function restPage(): string {
  const all: readonly Declaration[] = Object.values(operations);
  const served: readonly StreamDeclaration[] = Object.values(streams);
  const sections = new Map<string, string[]>();
  const add = (tag: string, text: string): void => void sections.set(tag, [...(sections.get(tag) ?? []), text]);
  for (const declaration of all) if (declaration.path !== undefined) add(declaration.tag, operationText(declaration));
  for (const declaration of served) add(declaration.tag, streamText(declaration));
  const body = [...sections].map(([tag, texts]) => `\n## ${tag}\n${texts.join('')}`).join('');
  return HEAD + errorTable() + withoutRepetition(body + sharedText());
}

if (import.meta.main) {
  const page = restPage();
  const name = relative(process.cwd(), PAGE);
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(PAGE), { recursive: true });
    writeFileSync(PAGE, page);
  } else if (!existsSync(PAGE) || readFileSync(PAGE, 'utf8') !== page) {
    console.error(`${name} is out of date. Run "npm run docs"`);
    process.exit(1);
  }
}
