/** Creates the OpenAPI 3.1 document of the whole API from the operations table. */
import type { TObject, TSchema } from 'typebox';
import { MAX_AID_CHARS } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SERVICE_NAME_FORM } from '../../foundation/domain/services.ts';
import { ERRORS, type ErrorCode } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { lazy } from '../../foundation/lazy.ts';
import { MAX_SERVICE_NAME_CHARS } from '../../foundation/records/types.ts';
import { AclView, Agent, Profile } from '../../operations/agents.ts';
import { NodeStatus } from '../../operations/node.ts';
import { StoredObject } from '../../operations/objects.ts';
import type { Declaration } from '../../operations/operation.ts';
import { hasLabels, ResultLabels } from '../../operations/result-labels.ts';
import { AidText, ErrorBody, hasAid, Ok, Pending, Timestamp } from '../../operations/schemas.ts';
import type { StreamDeclaration } from '../../operations/stream.ts';
import { TunnelView } from '../../operations/tunnels.ts';
import { WIRE_REFUSALS } from './listener.ts';

// Schemas for the OpenAPI document. Schemas that several operations share are named. Constraints that the code checks
// (formats of AIDs and hex, ranges of integers) are added for generators and tests.

/** A JSON document. */
type Document = Readonly<Record<string, unknown>>;

/** The position of a schema. Numbers in a path or query are parsed from text with at most 15 digits. */
type Place = 'text' | 'json' | 'answer';

/** Highest integer in a path or query. */
const MAX_TEXT_INTEGER = 999_999_999_999_999;
/** Pattern for the text of every kind of AID. */
const AID_PATTERN = `^(?:aid1|AID1|0x|bc1|BC1|pr1|PR1|1|did:key:z)[0-9A-Za-z]{20,${MAX_AID_CHARS}}$`;
const HEX_PATTERN = '^(?:0[xX])?(?:[0-9a-fA-F]{2})*$';

/** Names of shared schemas. Containing schemas precede the schemas that they contain. */
const NAMED: Readonly<Record<string, TSchema>> = {
  NodeStatus,
  Agent,
  Tunnel: TunnelView,
  AccessList: AclView,
  ProfileCard: Profile,
  StoredObject,
  Pending,
  Ok,
  Aid: AidText,
  Labels: ResultLabels,
  Timestamp,
  Error: ErrorBody,
};

const nameOf = lazy(() => new Map(Object.entries(NAMED).map(([name, schema]) => [JSON.stringify(schema), name])));

/** Adds the constraints that code checks to a schema. */
function addConstraints(schema: Document, place: Place, key: string): Document {
  const { type, format, pattern, maximum, minimum } = schema;
  // Requests may name an agent by a label.
  if (format === 'aid') return place === 'answer' ? { ...schema, pattern: AID_PATTERN } : schema;
  if (format === SERVICE_NAME_FORMAT)
    return { ...schema, pattern: SERVICE_NAME_FORM.source, minLength: 1, maxLength: MAX_SERVICE_NAME_CHARS };
  const isHex = type === 'string' && key.endsWith('_hex') && pattern === undefined;
  if (isHex && place !== 'answer') return { ...schema, pattern: HEX_PATTERN };
  if (type !== 'integer') return schema;
  const limit = place === 'text' ? MAX_TEXT_INTEGER : Number.MAX_SAFE_INTEGER;
  return {
    ...schema,
    ...(minimum === undefined ? { minimum: -limit } : {}),
    ...(maximum === undefined ? { maximum: limit } : {}),
  };
}

function documentMember(value: unknown, place: Place, key: string, isProperties: boolean): unknown {
  if (Array.isArray(value)) return value.map((one) => documentMember(one, place, key, false));
  if (!isObject(value)) return value;
  if (isProperties)
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, documentMember(one, place, name, false)]),
    );
  return documentSchema(value, place, key);
}

function inside(schema: Document, place: Place, key: string): Document {
  const members = Object.entries(schema).map(([name, value]) => [
    name,
    ['default', 'const', 'enum'].includes(name) ? value : documentMember(value, place, key, name === 'properties'),
  ]);
  return addConstraints(Object.fromEntries(members), place, key);
}

/**
 * A schema for the document.
 * @param key the field that uses it
 */
function documentSchema(schema: Document, place: Place = 'json', key = ''): Document {
  const known = place !== 'text' ? nameOf().get(JSON.stringify(schema)) : undefined;
  const name = known === 'Aid' && place !== 'answer' ? undefined : known;
  return name === undefined ? inside(schema, place, key) : { $ref: `#/components/schemas/${name}` };
}

/** The shared schemas by name. */
function sharedSchemas(): Document {
  return Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, inside({ ...schema }, 'answer', '')]));
}

/** Descriptions of the sections of the API. */
const TAG_DESCRIPTIONS: Readonly<Record<string, string>> = {
  'Access control': 'Access lists of agents.',
  'Address book': 'Labels and favorites of this node.',
  Agents: 'Agents on this node and their services.',
  Calls: 'HTTP requests to remote agents.',
  Chat: 'Conversations between two agents.',
  Configuration: 'The settings of the daemon.',
  Diagnostics: 'Internal state for troubleshooting.',
  Hooks: 'Programs that start when something arrives.',
  Directory: 'Publishing and finding agents.',
  Documentation: 'This document and its page.',
  Events: 'Events of agents and of the node.',
  Gateway: 'Web services of remote agents below a path of this API.',
  Groups: 'Groups of agents. MCP tools offer more than reading.',
  Identity: 'New identities and their keys.',
  MCP: 'Tools for assistants.',
  'MCP hub': 'The tools of other agents, and the definitions that you accepted.',
  Mailbox: 'Sealed notes, also for agents that are offline.',
  Node: 'State of this node.',
  Objects: 'Bytes named by their hash.',
  Files: 'File offers between agents.',
  Panel: 'The web panel.',
  Reach: 'Paths to other nodes.',
  'Remote administration': 'Managing this node from another machine.',
  'Public addresses': 'Agents at https addresses, for callers without svcd, and the entry of their names.',
  Tunnels: 'TCP connections to remote agents.',
  Updates: 'Updates of svcd.',
  Wallets: 'Agents whose master key is a wallet.',
};

// Generates examples for all requests and responses of the OpenAPI document from their schemas.

const AID = 'aid1fj66ha4d08alt2auet7vy6wctnfx28k5hzzmtp5lysdwmu99hg5spq62xc';
/** The did:key of that agent. */
const DID = 'did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG';
const HASH_DIGITS = 64;
/** Deeper than any schema, so that recursive schemas end. */
const MAX_DEPTH = 12;

/** Example values by field name. */
const BY_NAME: Readonly<Record<string, string>> = {
  listen: '127.0.0.1:40123',
  tunnel: '127.0.0.1:40123',
  service_tcp: '127.0.0.1:8080',
  endpoints: 'quic://192.0.2.1:4122',
  rules: 'POST /hooks/github',
  path: '/',
  method: 'GET',
  kind: 'msg',
  cursor: '7',
  next_cursor: '7',
};

function text(schema: Document, key: string): string {
  const { format, pattern, contentEncoding, minLength } = schema;
  if (format === 'aid') return AID;
  if (format === 'service-name') return 'lang.translate';
  if (typeof pattern === 'string' && pattern.startsWith('^did:key:')) return DID;
  if (format === 'date-time') return '2026-11-22T20:00:00.000Z';
  if (contentEncoding === 'base64') return Buffer.from('hello').toString('base64');
  const digits = typeof pattern === 'string' ? /\[0-9a-f\]\{(\d+)\}\$$/.exec(pattern)?.[1] : undefined;
  if (digits !== undefined) return '9f'.repeat(Number(digits) / 2);
  if (key.endsWith('_hex')) return '9f'.repeat(HASH_DIGITS / 2);
  if (key.endsWith('_base64')) return Buffer.from('hello').toString('base64');
  return (
    BY_NAME[key] ?? (typeof minLength === 'number' && minLength > key.length ? 'x'.repeat(minLength) : key || 'text')
  );
}

function number({ minimum, type }: Document): number {
  const least = typeof minimum === 'number' ? minimum : 0;
  return type === 'integer' ? Math.max(least, 1) : Math.max(least, 1.5);
}

/**
 * A value that matches a schema.
 * @param shared the schemas that it may refer to
 */
function schemaExample(schema: Document, shared: Document, key = '', depth = 0): unknown {
  const { $ref, anyOf, allOf, type, properties, items } = schema;
  if (typeof $ref === 'string') return schemaExample(named($ref, shared), shared, key, depth + 1);
  if ('const' in schema) return schema['const'];
  if ('default' in schema) return schema['default'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const [first]: unknown[] = Array.isArray(anyOf) ? anyOf : Array.isArray(allOf) ? allOf : [];
  if (isObject(first)) return schemaExample(first, shared, key, depth + 1);
  switch (type) {
    case 'string':
      return text(schema, key);
    case 'integer':
    case 'number':
      return number(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return isObject(items) && depth < MAX_DEPTH ? [schemaExample(items, shared, key, depth + 1)] : [];
    default:
      return isObject(properties) ? object(schema, properties, shared, depth) : {};
  }
}

function object(schema: Document, properties: Document, shared: Document, depth: number): Document {
  const [form]: unknown[] = Array.isArray(schema['oneOf']) ? schema['oneOf'] : [];
  const required = new Set([schema, form].flatMap(requiredOf));
  const members = Object.entries(properties).flatMap(([name, member]) => {
    const isShown = required.has(name) || required.size === 0;
    return isObject(member) && isShown && depth < MAX_DEPTH
      ? [[name, schemaExample(member, shared, name, depth + 1)]]
      : [];
  });
  return Object.fromEntries(members);
}

function requiredOf(schema: unknown): unknown[] {
  return isObject(schema) && Array.isArray(schema['required']) ? schema['required'] : [];
}

function named(ref: string, shared: Document): Document {
  const schema = shared[ref.slice(ref.lastIndexOf('/') + 1)];
  return isObject(schema) ? schema : {};
}

interface Api {
  readonly version: string;
  readonly operations: readonly Declaration[];
  readonly streams: readonly StreamDeclaration[];
}

/** Errors that every operation can return. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_request',
  'unauthorized',
  'forbidden_host',
  'forbidden_origin',
  'rate_limited',
  'internal',
];
/** Errors of every operation with a JSON body. */
const BODY_ERRORS: readonly ErrorCode[] = ['invalid_json', 'too_large', 'unsupported_media_type'];

/** Errors of the request that calls a tool, not of the tool. */
const REQUEST_ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'forbidden_host',
  'forbidden_origin',
  'internal',
  'invalid_json',
  'unsupported_media_type',
]);

const ANY_METHOD = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

type Kind = Pick<Declaration, 'params' | 'query' | 'permission' | 'errors'>;

/** Error codes of an operation or a stream with this declaration. */
function codesOf({ params, query, permission, errors }: Kind, body?: TObject): ReadonlySet<ErrorCode> {
  const aids = [params, query, ...(body === undefined ? [] : [body])].some(hasAid);
  return new Set<ErrorCode>([
    ...COMMON_ERRORS,
    ...(body === undefined ? [] : BODY_ERRORS),
    ...(aids ? (['bad_aid', 'ambiguous_label'] as const) : []),
    ...(permission === 'local_only' ? (['local_only'] as const) : []),
    ...errors,
  ]);
}

/** All error codes of an operation, including common codes. */
export function errorCodes(declaration: Declaration): readonly ErrorCode[] {
  return [...codesOf(declaration, declaration.method === 'GET' ? undefined : declaration.body)];
}

/** One error response. */
interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** The error responses with a code. A status from the HTTP parser is used only for errors of the parser. */
function refusalsOf(code: ErrorCode): readonly Refusal[] {
  const { status: main, otherStatuses, message } = ERRORS[code];
  const others: readonly number[] = otherStatuses;
  return [main, ...others.filter((status) => !WIRE_REFUSALS.some((refusal) => refusal.status === status))].map(
    (status) => ({ status, code, message }),
  );
}

/** Error responses of the tools that an operation calls. They use its status. */
function toolRefusals(status: number, operations: readonly Declaration[]): readonly Refusal[] {
  const codes = new Set(operations.flatMap((one) => (one.tool === undefined ? [] : toolErrors(one))));
  return [...codes].map((code) => ({ status, code, message: ERRORS[code].message }));
}

/** Errors of a tool's operation that do not depend on the HTTP request. */
function toolErrors(declaration: Declaration): readonly ErrorCode[] {
  const { params, query, body, permission, errors } = declaration;
  const codes = codesOf({ params, query, permission, errors }, body);
  return [...codes].filter((code) => !REQUEST_ERRORS.has(code));
}

function errorResponses(codes: Iterable<ErrorCode>, more: readonly Refusal[] = []): Document {
  const refusals = [...[...codes].flatMap(refusalsOf), ...more, ...WIRE_REFUSALS];
  const responses = [...Map.groupBy(refusals, ({ status }) => status)]
    .sort(([a], [b]) => a - b)
    .map(([status, list]) => [
      String(status),
      {
        description: list.map(({ code, message }) => `\`${code}\`: ${message}`).join('\n\n'),
        content: {
          'application/json': {
            schema: {
              allOf: [{ $ref: '#/components/schemas/Error' }],
              properties: { error: { enum: list.map(({ code }) => code) } },
            },
            example: { error: list[0]?.code, message: list[0]?.message },
          },
        },
      },
    ]);
  return Object.fromEntries(responses);
}

/** A parameter in a path. */
const PARAMETER = /\{(\w+)\}/g;

/**
 * Maps path shapes to paths. OpenAPI treats paths that differ only in parameter names as equal, so the names that most
 * operations use are chosen.
 */
function canonicalPaths(paths: readonly string[]): (path: string) => string {
  const uses = new Map<string, number>();
  for (const path of paths) uses.set(path, (uses.get(path) ?? 0) + 1);
  const byShape = new Map<string, string>();
  for (const [path, count] of uses) {
    const shape = path.replaceAll(PARAMETER, '{}');
    if (count > (uses.get(byShape.get(shape) ?? '') ?? 0)) byShape.set(shape, path);
  }
  return (path) => byShape.get(path.replaceAll(PARAMETER, '{}')) ?? path;
}

/** Parameter names of a path, in order. */
function parameterNames(path: string): string[] {
  return [...path.matchAll(PARAMETER)].map(([, name = '']) => name);
}

/** Path parameters with their names in the document. */
function pathParameters(declared: string, spelt: string, schema: TObject): Document[] {
  const names = parameterNames(spelt);
  const renamed = new Map(parameterNames(declared).map((name, i) => [name, names[i] ?? name]));
  return parameters('path', schema, (name) => renamed.get(name) ?? name).map((parameter, i) => {
    const meant = Object.keys(schema.properties)[i];
    if (meant === parameter['name']) return parameter;
    const before = parameter['description'];
    // All methods of a path share its parameter names. Here the parameter has another meaning.
    const text = `Here \`${meant}\`, not \`${String(parameter['name'])}\`. ${typeof before === 'string' ? before : ''}`;
    return { ...parameter, description: text.trim() };
  });
}

function parameters(place: 'path' | 'query', schema: TObject, nameOf = (name: string): string => name): Document[] {
  const required = new Set<string>(schema.required);
  return Object.entries(schema.properties).map(([name, member]) => {
    const description: unknown = Reflect.get(member, 'description');
    return {
      name: nameOf(name),
      in: place,
      required: place === 'path' || required.has(name),
      ...(typeof description === 'string' ? { description } : {}),
      schema: documentSchema({ ...member }, 'text', name),
    };
  });
}

/** Created on the first request for the document, not at start. */
const shared = lazy(sharedSchemas);

/** Required even if it may be empty. Generated clients omit `Content-Type` without a body, but every write needs it. */
function requestBody(body: TObject): Document {
  return { requestBody: { required: true, content: jsonContent(body, 'json') } };
}

function jsonContent(schema: TSchema, place: 'json' | 'answer', type = 'application/json', labels = false): Document {
  const full = documentSchema({ ...schema }, place);
  return { [type]: { schema: labels ? labeled(full) : full, example: schemaExample(full, shared()) } };
}

/** A result with the member `labels`. */
function labeled(schema: Document): Document {
  const labels = { $ref: '#/components/schemas/Labels' };
  if ('$ref' in schema) return { type: 'object', allOf: [schema], properties: { labels } };
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  return { ...schema, properties: { ...properties, labels } };
}

function successes(statuses: readonly number[], type: string, schema?: TSchema, labels = false): Document {
  const bytes = /^(?:text|application\/octet)/.test(type) ? { schema: { type: 'string' } } : {};
  const content = schema === undefined ? { [type]: bytes } : jsonContent(schema, 'answer', type, labels);
  return Object.fromEntries(statuses.map((status) => [status, { description: 'Success.', content }]));
}

function description(permission: Declaration['permission'], heartbeat: Declaration['heartbeat']): Document {
  const notes = [
    ...(permission === 'local_only' ? ['Only for programs on the same machine.'] : []),
    ...(permission === 'open' ? ['Requires no token.'] : []),
    ...(permission === 'peer' ? ["Controlled by the called agent's access list."] : []),
    ...(heartbeat === true ? ['Counts as a heartbeat of the agent.'] : []),
    ...(heartbeat === 'local_aid' || heartbeat === 'tunnel' ? ['Counts as a heartbeat of the local agent.'] : []),
  ];
  return notes.length === 0 ? {} : { description: notes.join(' ') };
}

function operationItem(declaration: Declaration, path: string, spelt: string, more: readonly Refusal[]): Document {
  const { name, summary, tag, params, query, body, output, method, permission, heartbeat } = declaration;
  const { status = 200, otherStatuses = [], produces = 'application/json' } = declaration;
  return {
    operationId: name,
    summary,
    ...description(permission, heartbeat),
    tags: [tag],
    parameters: [...pathParameters(path, spelt, params), ...parameters('query', query)],
    ...(method === 'GET' ? {} : requestBody(declaration.shownBody ?? body)),
    responses: {
      ...successes([status, ...otherStatuses], produces, output, hasLabels(declaration)),
      ...errorResponses(errorCodes(declaration), more),
    },
  };
}

function acceptedContent(type: string): Document {
  const schema = { type: 'object', additionalProperties: true };
  if (type === 'application/json') return { [type]: { schema, example: {} } };
  return { [type]: { schema: { type: 'string', format: 'binary' } } };
}

function streamItem(declaration: StreamDeclaration, method: string): Document {
  const { name, summary, tag, params, query, permission, accepts, produces, methods } = declaration;
  const [first] = methods === 'ANY' ? ANY_METHOD : methods;
  return {
    operationId: method === first ? name : `${name}_${method.toLowerCase()}`,
    summary,
    ...description(permission, false),
    tags: [tag],
    parameters: [...parameters('path', params), ...parameters('query', query)],
    ...(accepts === undefined || method === 'GET' || method === 'HEAD'
      ? {}
      : { requestBody: { required: true, content: acceptedContent(accepts) } }),
    responses: {
      ...successes([declaration.status ?? 200], produces, declaration.output),
      ...errorResponses(codesOf(declaration)),
    },
  };
}

/** The document as a value for `JSON.stringify`. */
export function openApiDocument({ version, operations, streams }: Api): Document {
  const paths: Record<string, Record<string, unknown>> = {};
  const add = (path: string, method: string, item: Document): void => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: item };
  };
  const spelling = canonicalPaths(operations.flatMap(({ path }) => path ?? []));
  for (const declaration of operations) {
    const { path } = declaration;
    if (path === undefined) continue;
    const spelt = spelling(path);
    const { toolErrorStatus: status } = declaration;
    const more = status === undefined ? [] : toolRefusals(status, operations);
    add(spelt, declaration.method, operationItem(declaration, path, spelt, more));
  }
  for (const declaration of streams) {
    for (const method of declaration.methods === 'ANY' ? ANY_METHOD : declaration.methods)
      add(declaration.path.replace('*}', '}'), method, streamItem(declaration, method));
  }
  const tags = new Set([...operations, ...streams].map(({ tag }) => tag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'svcd',
      version,
      summary: 'The local API of an svcd daemon.',
      description:
        'Every write needs `Content-Type: application/json`. Errors are `{error, message, details?}`; `error` is a stable code.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    tags: [...tags].map((name) => ({ name, description: TAG_DESCRIPTIONS[name] ?? name })),
    paths,
    components: {
      schemas: shared(),
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'The API token, if one is set.' } },
    },
  };
}
