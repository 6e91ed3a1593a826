/**
 * Fuzzes a running API from its OpenAPI document: with valid and nearly valid requests, and with bytes that are not
 * JSON. Every response must match the document.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Arbitrary } from 'fast-check';
import * as fc from 'fast-check';
import { anything, fitting, isSchema, nearlyFitting, type Schema } from './schema-arbitrary.ts';

export interface FuzzOptions {
  /** Number of requests. */
  readonly runs: number;
  readonly seed: number;
  /** Operations to skip, by `operationId`. */
  readonly skip?: readonly string[];
  readonly token?: string;
  /** Valid AIDs to use, in addition to AIDs in responses. */
  readonly aids?: readonly string[];
}

export interface FuzzReport {
  readonly requests: number;
  /** Number of responses by operation and status: `agentGet 404`. */
  readonly statuses: ReadonlyMap<string, number>;
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly item: Schema;
}

interface Shot {
  readonly operation: Operation;
  readonly path: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  /** Sent instead of the body, unchanged. */
  readonly rawBody: string | undefined;
  readonly contentType: string | undefined;
  /** Index of a known value for path parameters. Odd numbers: none. */
  readonly known: number;
}

const METHODS = new Set(['get', 'put', 'post', 'patch', 'delete']);
const REQUEST_TIMEOUT_MS = 90_000;
/** Length of request and response excerpts in a finding. */
const SHOWN_CHARACTERS = 400;
/** Number of known values per name. */
const MAX_KNOWN = 50;

function operationsOf(document: Schema, skip: ReadonlySet<string>): Operation[] {
  const paths = isSchema(document['paths']) ? document['paths'] : {};
  return Object.entries(paths).flatMap(([path, items]) =>
    Object.entries(isSchema(items) ? items : {})
      .filter(([method]) => METHODS.has(method))
      .map(([method, named]) => {
        const item = inlined(named, document);
        if (!isSchema(item)) throw new Error(`${method} ${path} is no operation`);
        return { id: String(item['operationId']), method: method.toUpperCase(), path, item };
      })
      .filter(({ id }) => !skip.has(id)),
  );
}

/** A part of a document with its references inlined. */
function inlined(part: unknown, document: Schema): unknown {
  if (Array.isArray(part)) return part.map((item) => inlined(item, document));
  if (!isSchema(part)) return part;
  if (typeof part['$ref'] === 'string') return inlined(at(document, ...part['$ref'].split('/').slice(1)), document);
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, inlined(value, document)]));
}

/** Parameters with which a response would take up to a minute. */
const SLOW: ReadonlySet<unknown> = new Set(['wait_s']);

function parametersOf(item: Schema, place: string): Schema {
  const list = (Array.isArray(item['parameters']) ? item['parameters'] : []).filter(isSchema);
  const here = list.filter(({ in: part, name }) => part === place && !SLOW.has(name));
  return {
    type: 'object',
    properties: Object.fromEntries(here.map((parameter) => [String(parameter['name']), parameter['schema']])),
    required: here.filter((parameter) => parameter['required'] === true).map(({ name }) => name),
  };
}

function at(value: unknown, ...keys: readonly string[]): unknown {
  return keys.reduce<unknown>((inner, key) => (isSchema(inner) ? inner[key] : undefined), value);
}

function bodySchema(item: Schema): Schema | undefined {
  const schema = at(item, 'requestBody', 'content', 'application/json', 'schema');
  return isSchema(schema) ? schema : undefined;
}

function shotArbitrary(operation: Operation, aids: readonly string[]): Arbitrary<Shot> {
  const options = { aids };
  // Mostly valid: rejected requests do not reach the code behind the validation.
  const mostly = (schema: Schema): Arbitrary<unknown> =>
    fc.oneof(
      { weight: 4, arbitrary: fitting(schema, options) },
      { weight: 1, arbitrary: nearlyFitting(schema, options) },
    );
  const body = bodySchema(operation.item);
  const some = <T>(weight: number, usual: Arbitrary<T>, odd: Arbitrary<T>): Arbitrary<T> =>
    fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });
  const record = (arbitrary: Arbitrary<unknown>) => arbitrary.map((value) => (isSchema(value) ? value : {}));
  return fc.record({
    operation: fc.constant(operation),
    path: record(mostly(parametersOf(operation.item, 'path'))),
    query: record(
      some(3, mostly(parametersOf(operation.item, 'query')), fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 })),
    ),
    body: body === undefined ? some(3, fc.constant<unknown>(undefined), anything) : some(6, mostly(body), anything),
    rawBody: some(
      20,
      fc.constant<string | undefined>(undefined),
      fc.oneof(
        fc.string(),
        fc.json().map((json) => json.slice(1)),
      ),
    ),
    contentType: some(
      20,
      fc.constant<string | undefined>('application/json'),
      fc.constantFrom<string | undefined>(
        undefined,
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/json; x',
      ),
    ),
    known: fc.nat(1000),
  });
}

/** A copy of a schema in which a described object has no additional members. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (!isSchema(schema)) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  const closes =
    isSchema(schema['properties']) && schema['type'] === 'object' && schema['additionalProperties'] === undefined;
  // `allOf` describes further members.
  const isWhole = schema['patternProperties'] === undefined && schema['allOf'] === undefined;
  return closes && isWhole ? { ...copy, additionalProperties: false } : copy;
}

/** The compiled response schemas of a document. */
class Answers {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  readonly #document: Schema;
  readonly #checks = new Map<string, ValidateFunction>();

  constructor(document: Schema) {
    this.#document = document;
  }

  /** The problem of a response, or null. */
  problem(operation: Operation, status: number, contentType: string, text: string): string | null {
    const { responses } = operation.item;
    const described = at(responses, String(status), 'content');
    if (status === 500) return 'an internal error';
    if (!isSchema(described)) return 'a status that the document does not name';
    const [type] = Object.keys(described);
    if (status < 400 && type !== 'application/json') return null;
    if (!contentType.startsWith('application/json')) return `the content type ${contentType}`;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return 'a body that is no JSON';
    }
    const check = this.#check(`${operation.id} ${status}`, at(described, 'application/json', 'schema'), status < 300);
    return check(value) ? null : `a body that does not fit: ${this.#ajv.errorsText(check.errors)}`;
  }

  #check(name: string, schema: unknown, closed: boolean): ValidateFunction {
    const known = this.#checks.get(name);
    if (known !== undefined) return known;
    const root = { ...(isSchema(schema) ? schema : {}), components: this.#document['components'] };
    const check = this.#ajv.compile(closed ? { ...Object(strict(schema)), components: root.components } : root);
    this.#checks.set(name, check);
    return check;
  }
}

/** Values in responses by member name: IDs lead to further operations. */
class Known {
  readonly #byName = new Map<string, string[]>();

  learn(value: unknown, name = ''): void {
    if (typeof value === 'string') {
      const list = this.#byName.get(name) ?? [];
      if (list.length < MAX_KNOWN && !list.includes(value)) list.push(value);
      this.#byName.set(name, list);
    } else if (Array.isArray(value)) for (const item of value) this.learn(item, name);
    else if (isSchema(value)) for (const [key, member] of Object.entries(value)) this.learn(member, key);
  }

  pick(name: string, index: number): string | undefined {
    const list = this.#byName.get(name) ?? [];
    return index % 2 === 1 || list.length === 0 ? undefined : list[(index >> 1) % list.length];
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function targetOf(shot: Shot, known: Known): { target: string; ordinary: boolean } {
  let ordinary = true;
  const path = shot.operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = known.pick(name, shot.known) ?? textOf(shot.path[name]);
    // These values lead to another path.
    if (value === '' || value === '.' || value === '..') ordinary = false;
    return encodeURIComponent(value.toWellFormed());
  });
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(shot.query)) {
    for (const item of Array.isArray(value) ? value : [value])
      query.append(key.toWellFormed(), textOf(item).toWellFormed());
  }
  return { target: `${path}${query.size > 0 ? `?${query.toString()}` : ''}`, ordinary };
}

/** Request and response for a person who investigates the finding. */
interface Finding {
  readonly sent: string;
  readonly answer: string;
}

/**
 * Sends `runs` requests to the API at `baseUrl`. The sequence depends on the seed and the responses.
 * @throws Error with each kind of undocumented response and its shortest request
 */
export async function fuzzApi(baseUrl: string, openapi: unknown, options: FuzzOptions): Promise<FuzzReport> {
  if (!isSchema(openapi)) throw new Error('this is no OpenAPI document');
  const operations = operationsOf(openapi, new Set(options.skip));
  const answers = new Answers(openapi);
  const known = new Known();
  const statuses = new Map<string, number>();
  const findings = new Map<string, Finding>();

  const fire = async (shot: Shot): Promise<void> => {
    const { operation, contentType } = shot;
    const { target, ordinary } = targetOf(shot, known);
    const body = operation.method === 'GET' ? undefined : (shot.rawBody ?? JSON.stringify(shot.body));
    const response = await fetch(baseUrl + target, {
      method: operation.method,
      headers: {
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        ...(contentType === undefined || operation.method === 'GET' ? {} : { 'content-type': contentType }),
      },
      body: body === undefined ? null : Buffer.from(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    // An event stream has no end.
    const endless = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
    if (endless) await response.body?.cancel();
    const text = endless ? '' : await response.text();
    const { status } = response;
    const key = `${ordinary ? operation.id : 'elsewhere'} ${status}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
    const problem = ordinary
      ? answers.problem(operation, status, response.headers.get('content-type') ?? '', text)
      : status === 500
        ? 'an internal error'
        : null;
    if (problem === null) {
      if (status < 300 && text.startsWith('{')) known.learn(JSON.parse(text));
      return;
    }
    const sent = `${operation.method} ${target} ${body ?? ''}`;
    const before = findings.get(`${key}: ${problem}`);
    if (before === undefined || before.sent.length > sent.length)
      findings.set(`${key}: ${problem}`, { sent, answer: text });
  };

  const shots = fc.oneof(...operations.map((operation) => shotArbitrary(operation, options.aids ?? [])));
  for (const shot of fc.sample(shots, { numRuns: options.runs, seed: options.seed })) await fire(shot);
  if (findings.size > 0) {
    const list = [...findings].map(([what, { sent, answer }]) => {
      return `${what}\n  ${sent.slice(0, SHOWN_CHARACTERS)}\n  ${answer.slice(0, SHOWN_CHARACTERS)}`;
    });
    throw new Error(`undescribed answers with seed ${options.seed}:\n${list.join('\n')}`);
  }
  return { requests: options.runs, statuses };
}
