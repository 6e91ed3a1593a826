/** The OpenAPI 3.1 document of the whole API, from the operations table. */
import type { TObject, TSchema } from 'typebox';
import { ERRORS, type ErrorCode } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import type { Declaration } from '../../operations/operation.ts';
import { hasAid } from '../../operations/schemas.ts';
import type { StreamDeclaration } from '../../operations/stream.ts';
import { WIRE_REFUSALS } from './listener.ts';
import { schemaExample } from './openapi-examples.ts';
import { type Document, sharedSchemas, shown } from './openapi-schemas.ts';
import { TAG_DESCRIPTIONS } from './openapi-tags.ts';

interface Api {
  readonly version: string;
  readonly operations: readonly Declaration[];
  readonly streams: readonly StreamDeclaration[];
}

/** Errors that every operation may give, whatever it does. */
const ALWAYS: readonly ErrorCode[] = [
  'invalid_request',
  'unauthorized',
  'forbidden_host',
  'forbidden_origin',
  'rate_limited',
  'internal',
];
/** Errors of every operation that takes a JSON body. */
const WITH_BODY: readonly ErrorCode[] = ['invalid_json', 'too_large', 'unsupported_media_type'];

/** Errors of the request that calls a tool, and not of the tool. */
const OF_REQUESTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'forbidden_host',
  'forbidden_origin',
  'internal',
  'invalid_json',
  'unsupported_media_type',
]);

const ANY_METHOD = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;

type Kind = Pick<Declaration, 'params' | 'query' | 'permission' | 'errors'>;

/** Codes that an operation or a stream may give whose kind and parts are these. */
function codesOf({ params, query, permission, errors }: Kind, body?: TObject): ReadonlySet<ErrorCode> {
  const aids = [params, query, ...(body === undefined ? [] : [body])].some(hasAid);
  return new Set<ErrorCode>([
    ...ALWAYS,
    ...(body === undefined ? [] : WITH_BODY),
    ...(aids ? (['bad_aid'] as const) : []),
    ...(permission === 'local_only' ? (['local_only'] as const) : []),
    ...errors,
  ]);
}

/** Every code that an operation may give: its own and those of its kind. */
export function errorCodes(declaration: Declaration): readonly ErrorCode[] {
  return [...codesOf(declaration, declaration.method === 'GET' ? undefined : declaration.body)];
}

/** One way in which a request is refused. */
interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
}

/** The refusals by a code: with a status of the wire only where the wire gives it. */
function refusalsOf(code: ErrorCode): readonly Refusal[] {
  const { status: main, otherStatuses, message } = ERRORS[code];
  const others: readonly number[] = otherStatuses;
  return [main, ...others.filter((status) => !WIRE_REFUSALS.some((refusal) => refusal.status === status))].map(
    (status) => ({ status, code, message }),
  );
}

/** Refusals by the tools that an operation calls: with its status, whatever their own is. */
function toolRefusals(status: number, operations: readonly Declaration[]): readonly Refusal[] {
  const codes = new Set(operations.flatMap((one) => (one.tool === undefined ? [] : toolErrors(one))));
  return [...codes].map((code) => ({ status, code, message: ERRORS[code].message }));
}

/** What the operation of a tool may give besides an answer, where nothing is known of a request. */
function toolErrors(declaration: Declaration): readonly ErrorCode[] {
  const { params, query, body, permission, errors } = declaration;
  const codes = codesOf({ params, query, permission, errors }, body);
  return [...codes].filter((code) => !OF_REQUESTS.has(code));
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

/** What stands in the place of each parameter of a path. */
const PARAMETER = /\{(\w+)\}/g;

/**
 * The spelling of each path by its shape: OpenAPI takes paths that differ only in the names of their parameters for one
 * path, so they go by the names that most of their operations use.
 */
function spellings(paths: readonly string[]): (path: string) => string {
  const uses = new Map<string, number>();
  for (const path of paths) uses.set(path, (uses.get(path) ?? 0) + 1);
  const byShape = new Map<string, string>();
  for (const [path, count] of uses) {
    const shape = path.replaceAll(PARAMETER, '{}');
    if (count > (uses.get(byShape.get(shape) ?? '') ?? 0)) byShape.set(shape, path);
  }
  return (path) => byShape.get(path.replaceAll(PARAMETER, '{}')) ?? path;
}

/** Names of the parameters in a path, in order. */
function parameterNames(path: string): string[] {
  return [...path.matchAll(PARAMETER)].map(([, name = '']) => name);
}

/** Parameters of a path, under the names that they have in the document. */
function pathParameters(declared: string, spelt: string, schema: TObject): Document[] {
  const names = parameterNames(spelt);
  const renamed = new Map(parameterNames(declared).map((name, i) => [name, names[i] ?? name]));
  return parameters('path', schema, (name) => renamed.get(name) ?? name).map((parameter, i) => {
    const meant = Object.keys(schema.properties)[i];
    if (meant === parameter['name']) return parameter;
    const before = parameter['description'];
    // The path has one spelling for all its methods, and here another meaning.
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
      schema: shown({ ...member }, 'text', name),
    };
  });
}

/** Made when the document is asked for first: no start waits for it. */
const shared = lazy(sharedSchemas);

/** Required even where it may be empty: with no body a generated client sends no `Content-Type` either, which every write needs. */
function requestBody(body: TObject): Document {
  return { requestBody: { required: true, content: jsonContent(body, 'json') } };
}

function jsonContent(schema: TSchema, place: 'json' | 'answer', type = 'application/json'): Document {
  const full = shown({ ...schema }, place);
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
    ...(permission === 'open' ? ['Takes no token.'] : []),
    ...(permission === 'peer' ? ["Governed by the called agent's access list."] : []),
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

/** The document as a value that `JSON.stringify` writes. */
export function openApiDocument({ version, operations, streams }: Api): Document {
  const paths: Record<string, Record<string, unknown>> = {};
  const add = (path: string, method: string, item: Document): void => {
    paths[path] = { ...paths[path], [method.toLowerCase()]: item };
  };
  const spelling = spellings(operations.flatMap(({ path }) => path ?? []));
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
        'Every write carries `Content-Type: application/json`. Errors are `{error, message, details?}`; `error` is a stable code.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    tags: [...tags].map((name) => ({ name, description: TAG_DESCRIPTIONS[name] ?? name })),
    paths,
    components: {
      schemas: shared(),
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'The API token, where one is set.' } },
    },
  };
}
