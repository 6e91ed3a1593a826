/**
 * Writes docs/reference/rest.md: every route of the operations table and every error code. `--check`
 * writes nothing and fails where the page is not what the table says.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { ERRORS, type ErrorCode } from '../src/foundation/errors.ts';
import { operations, streams } from '../src/operations/index.ts';
import type { Declaration, Permission } from '../src/operations/operation.ts';
import type { StreamDeclaration } from '../src/operations/stream.ts';
import { errorCodes } from '../src/surfaces/rest/openapi.ts';

const PAGE = new URL('../docs/reference/rest.md', import.meta.url).pathname;

const HEAD = `# REST API

Written by \`node tools/rest-doc.ts\` from the operations table; a running daemon shows the same at \`/docs\` and
\`/openapi.json\`.

## Conventions

- The address is \`http://127.0.0.1:2121\`, or what \`api_addr\` says. Paths are taken as they stand: a slash more or less
  at the end is another path, and letters have their case. \`HEAD\` works wherever \`GET\` does.
- Every write (\`POST\`, \`PUT\`, \`PATCH\`, \`DELETE\`) carries \`Content-Type: application/json\`, also without a body; where
  no member is required the body may be left out. It is at most 1 MiB, nested at most 64 deep, and here within 30 s.
- Unknown members and unknown query keys are refused. The failing place is in \`details\`: \`{in, path, problem}\`.
- Numbers in the query are plain decimals, truth values are \`true\` and \`false\`, lists repeat the key.
- An AID is an agent identifier: \`aid1…\`, an Ethereum \`0x…\` or a Paralism address. It is taken in any of its texts and
  always given in the canonical one. Base64 is the standard one (RFC 4648, section 4).
- Timestamps are ISO 8601 in UTC.
- Every answer says \`Cache-Control: no-store\`; there are no CORS headers.

## Who may call

- A request is **local** when it comes over a loopback connection and its \`Host\` is a loopback name, or absent.
- On a loopback connection any other \`Host\` is refused (\`forbidden_host\`), and so is a request that a page of another
  site made (\`forbidden_origin\`): a web page cannot reach the API, whatever its name resolves to.
- Where \`api_token\` is set, requests that are not local carry \`Authorization: Bearer <token>\`; with
  \`require_local_token\` local ones do too. An address that sends wrong tokens, or from elsewhere many requests without
  one, has to wait (\`rate_limited\`). The right token is let in all the same if it has at least 22 characters; a
  shorter one waits too, because it could be guessed.
- Connections from this machine, from elsewhere, and from one address there are limited apart; so are the size of a
  head and the time that it may take. The figures are in [limits.md](../limits.md).

## Errors

Always \`{"error": "<code>", "message": "<what happened and what to do>", "details"?: {…}}\`. Every operation may give
those of its kind: ${(['invalid_request', 'unauthorized', 'forbidden_host', 'forbidden_origin', 'rate_limited', 'internal'] satisfies ErrorCode[]).map((code) => `\`${code}\``).join(', ')}, and a write \`invalid_json\`,
\`too_large\` and \`unsupported_media_type\`; they are not repeated below.
`;

/** Codes that the head of the page speaks of for all operations. */
const COMMON: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'invalid_request',
  'unauthorized',
  'forbidden_host',
  'forbidden_origin',
  'rate_limited',
  'internal',
  'invalid_json',
  'too_large',
  'unsupported_media_type',
]);

type Schema = Readonly<Record<string, unknown>>;

/** A schema of the table as plain JSON. */
function plain(schema: object): Schema {
  return JSON.parse(JSON.stringify(schema)) as Schema;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null;
}

function members(schema: Schema): [string, Schema][] {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  return Object.entries(properties).filter((pair): pair is [string, Schema] => isSchema(pair[1]));
}

function variants(schema: Schema): Schema[] {
  return (Array.isArray(schema['anyOf']) ? schema['anyOf'] : []).filter(isSchema);
}

/** The type of a schema in a word or two. */
export function typeText(schema: Schema): string {
  if ('const' in schema) return `\`${JSON.stringify(schema['const'])}\``;
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => `\`${JSON.stringify(value)}\``).join(' or ');
  const any = variants(schema);
  if (any.length > 0) return any.map(typeText).join(' or ');
  if (schema['type'] === 'array')
    return `array of ${isSchema(schema['items']) ? typeText(schema['items']) : 'anything'}`;
  if (schema['format'] === 'aid') return 'AID';
  if (schema['format'] === 'date-time') return 'timestamp';
  if (schema['contentEncoding'] === 'base64') return 'base64';
  return typeof schema['type'] === 'string' ? schema['type'] : 'anything';
}

/** Bounds and meaning of a schema. */
function notes(schema: Schema): string {
  const bound = (key: string, text: string): string[] =>
    schema[key] === undefined ? [] : [`${text} ${JSON.stringify(schema[key])}`];
  const limits = [
    ...bound('minimum', 'at least'),
    ...bound('maximum', 'at most'),
    ...bound('maxItems', 'items at most'),
    ...bound('minItems', 'items at least'),
    ...bound('maxLength', 'characters at most'),
    ...(schema['default'] === undefined ? [] : [`default \`${JSON.stringify(schema['default'])}\``]),
  ].join(', ');
  // What a type is, is said once above.
  const named =
    schema['format'] === 'aid' || schema['contentEncoding'] === 'base64' || schema['format'] === 'date-time';
  const own = typeof schema['description'] === 'string' && !named ? schema['description'] : '';
  return [own, limits === '' ? '' : `${limits.charAt(0).toUpperCase()}${limits.slice(1)}.`].filter(Boolean).join(' ');
}

/** Rows of a schema and of all that is inside it, by dotted names. */
function rows(schema: Schema, prefix = ''): string[] {
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  return members(schema).flatMap(([name, member]) => {
    const optional = required.has(name) ? '' : '?';
    const full = `${prefix}${name}`;
    const row = `| \`${full}\`${optional} | ${typeText(member)} | ${notes(member).replaceAll('|', '\\|')} |`;
    const inner = [member, ...variants(member)].flatMap((part) => {
      const items = part['items'];
      return part['type'] === 'array' && isSchema(items) ? rows(items, `${full}[].`) : rows(part, `${full}.`);
    });
    return [row, ...inner];
  });
}

function table(title: string, schema: object): string {
  const lines = rows(plain(schema));
  if (lines.length === 0) return '';
  return `\n**${title}**\n\n| Name | Type | Notes |\n|---|---|---|\n${lines.join('\n')}\n`;
}

const PERMISSION: Readonly<Record<Permission, string>> = {
  read: '',
  write: '',
  local_only: 'Only for programs on this machine.',
  open: 'Takes no token.',
  peer: 'Takes no token: the access list of the called agent governs it.',
};

function bodyText(body: object): string {
  const own = notes(plain(body));
  return `${table('Body', body)}${own === '' ? '' : `\nBody: ${own}\n`}`;
}

function operationText(declaration: Declaration): string {
  const { method, path, summary, permission, heartbeat, tool, params, query, body, output, status } = declaration;
  const codes = errorCodes(declaration).filter((code) => !COMMON.has(code));
  const successes = [status ?? 200, ...(declaration.otherStatuses ?? [])].join(' or ');
  const facts = [
    summary,
    PERMISSION[permission],
    heartbeat === 'local_aid' || heartbeat === 'tunnel'
      ? 'Counts as a heartbeat of the local agent.'
      : heartbeat
        ? 'Counts as a heartbeat.'
        : '',
    tool === undefined ? '' : `MCP tool: \`${tool.name}\`.`,
  ];
  const outputTable = table(`Answer (${successes})`, output);
  const outputNotes = notes(plain(output));
  return [
    `\n### ${method} ${path}\n\n${facts.filter(Boolean).join(' ')}\n`,
    table('Path', params),
    table('Query', query),
    method === 'GET' ? '' : bodyText(body),
    outputTable === '' ? `\nAnswer (${successes}): a JSON object.\n` : outputTable,
    outputNotes === '' ? '' : `\n${outputNotes}\n`,
    codes.length === 0 ? '' : `\nErrors: ${codes.map((code) => `\`${code}\``).join(', ')}.\n`,
  ].join('');
}

function streamText(declaration: StreamDeclaration): string {
  const { methods, path, summary, permission, params, query, produces, accepts, errors } = declaration;
  const verbs = methods === 'ANY' ? 'Any method' : methods.join(', ');
  return [
    `\n### ${verbs} ${path}\n\n${[summary, PERMISSION[permission]].filter(Boolean).join(' ')}\n`,
    table('Path', params),
    table('Query', query),
    accepts === undefined ? '' : `\nBody: \`${accepts}\`.\n`,
    `\nAnswer: \`${produces}\`.\n`,
    errors.length === 0 ? '' : `\nErrors: ${errors.map((code) => `\`${code}\``).join(', ')}.\n`,
  ].join('');
}

function errorTable(): string {
  const lines = Object.entries(ERRORS).map(([code, { status, otherStatuses, exit, message }]) => {
    return `| \`${code}\` | ${[status, ...otherStatuses].join(', ')} | ${exit} | ${message} |`;
  });
  return `\n| Code | Status | Exit code of \`svc\` | Meaning |\n|---|---|---|---|\n${lines.join('\n')}\n`;
}

/** The page. */
export function restPage(): string {
  const table: readonly Declaration[] = Object.values(operations);
  const served: readonly StreamDeclaration[] = Object.values(streams);
  const sections = new Map<string, string[]>();
  const add = (tag: string, text: string): void => void sections.set(tag, [...(sections.get(tag) ?? []), text]);
  for (const declaration of table) {
    if (declaration.path !== undefined) add(declaration.tag, operationText(declaration));
  }
  for (const declaration of served) add(declaration.tag, streamText(declaration));
  return HEAD + errorTable() + [...sections].map(([tag, texts]) => `\n## ${tag}\n${texts.join('')}`).join('');
}

if (import.meta.main) {
  const page = restPage();
  const name = relative(process.cwd(), PAGE);
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(PAGE), { recursive: true });
    writeFileSync(PAGE, page);
  } else if (!existsSync(PAGE) || readFileSync(PAGE, 'utf8') !== page) {
    console.error(`${name} is not what the operations table says: run "npm run docs"`);
    process.exit(1);
  }
}
