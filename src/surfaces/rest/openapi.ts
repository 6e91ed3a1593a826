/** Creates the OpenAPI 3.1 document of the whole API from the operations table. */
import type { TObject, TSchema } from 'typebox';
import { ERRORS, type ErrorCode } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import type { Declaration } from '../../operations/operation.ts';
import { hasAid } from '../../operations/schemas.ts';
import type { StreamDeclaration } from '../../operations/stream.ts';
import { WIRE_REFUSALS } from './listener.ts';
import { schemaExample } from './openapi-examples.ts';
import { type Document, documentSchema, sharedSchemas } from './openapi-schemas.ts';
import { TAG_DESCRIPTIONS } from './openapi-tags.ts';

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
    ...(aids ? (['bad_aid'] as const) : []),
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

function jsonContent(schema: TSchema, place: 'json' | 'answer', type = 'application/json'): Document {
  const full = documentSchema({ ...schema }, place);
  return { [type]: { schema: full, example: schemaExample(full, shared()) } };
}

function successes(statuses: readonly number[], type: string, schema?: TSchema): Document {
  const bytes = /^(?:text|application\/octet)/.test(type) ? { schema: { type: 'string' } } : {};
  const content = schema === undefined ? { [type]: bytes } : jsonContent(schema, 'answer', type);
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
      ...successes([status, ...otherStatuses], produces, output),
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
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
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
