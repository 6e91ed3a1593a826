/** Turns the input of a surface into the flat, validated input of an operation. */
import type { TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import type { TLocalizedValidationError } from 'typebox/error';
import { SvcError } from '../foundation/errors.ts';
import { type Aid, parseAid } from '../foundation/identity/aid.ts';
import { isObject, listMember, memberOf } from '../foundation/json.ts';
import { lazy } from '../foundation/lazy.ts';
import { cleanPastedId } from '../foundation/pasted.ts';
import { bodyInputKey } from './operation.ts';
import { hasAid, isAid, itemsOf, NONE } from './schemas.ts';

/** The parts of a request: path and query values are text, the body is any JSON. */
export interface RawInput {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  /** Undefined if the request has no body. */
  readonly body: unknown;
}

type Part = keyof RawInput;
type Values = Record<string, unknown>;
type PartReader = (value: unknown) => Values;

/** Format of path and query values: text over REST, JSON in the arguments of a tool. */
type Wire = 'text' | 'json';

/** Reads an AID. Surfaces of the daemon also accept labels. */
export type ParseAid = (text: string) => Aid;

/** Names of the parts in errors. */
const PART_NAMES: Readonly<Record<Part, string>> = { params: 'path', query: 'query', body: 'body' };

function invalid(part: Part, path: string, problem: string): SvcError {
  // The value is never shown: it may be a secret.
  return new SvcError('invalid_request', {
    message: `Invalid ${PART_NAMES[part]}: ${path === '' ? 'it' : path} ${problem}.`,
    details: { in: PART_NAMES[part], path, problem },
  });
}

/** Members that clients send by mistake, and why no operation accepts them. */
const NOT_TO_SEND: Readonly<Record<string, string>> = {
  '/master_private_key_hex': 'never send a master key: keep it offline',
};

/** Two names of a position in a log. An error suggests the other name. */
const OTHER_NAMES: Readonly<Record<string, string>> = { after_seq: 'last_event_id', last_event_id: 'after_seq' };

/** Suggestions for unknown members. */
function meantBy(paths: readonly string[], { properties }: TObject): string[] {
  return paths.flatMap((path) => {
    const other = OTHER_NAMES[path.slice(1)];
    return other !== undefined && Object.hasOwn(properties, other) ? `use ${other} instead of ${path.slice(1)}` : [];
  });
}

/**
 * The error for unknown members. It names all of them, so that the client can fix them together.
 * @param schema of the accepted members
 */
export function unknownMembers(place: string, paths: readonly string[], schema: TObject = NONE): SvcError {
  const [path = ''] = paths;
  const problem = 'is unknown';
  const what = place === 'args' ? 'arguments' : place;
  const text = paths.length === 1 ? `${path} ${problem}` : `${paths.join(', ')} are unknown: remove them`;
  const meant = [...paths.flatMap((one) => NOT_TO_SEND[one] ?? []), ...meantBy(paths, schema)];
  const reasons = meant.map((reason) => ` (${reason})`);
  return new SvcError('invalid_request', {
    message: `Invalid ${what}: ${text}${reasons.join('')}.`,
    details: { in: place, path, problem, ...(paths.length === 1 ? {} : { unknown: [...paths] }) },
  });
}

/**
 * Converts the text of a path or query to the type of its schema. Text that does not fit stays text and fails
 * validation.
 */
function fromText(schema: TSchema | undefined, value: unknown): unknown {
  switch (memberOf(schema, 'type')) {
    case 'integer':
      return typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
    case 'number':
      return typeof value === 'string' && /^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value;
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value;
    case 'array':
      return (Array.isArray(value) ? value : [value]).map((item) => fromText(itemsOf(schema), item));
    default:
      return value;
  }
}

/** True if `fromText` changes a text for a schema. */
function isConverted(schema: TSchema): boolean {
  return ['integer', 'number', 'boolean', 'array'].includes(String(memberOf(schema, 'type')));
}

function canonicalAid(part: Part, path: string, value: unknown, parse: ParseAid): unknown {
  if (typeof value !== 'string') return value;
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const details = { ...error.details, in: PART_NAMES[part], path };
    throw new SvcError(error.code, { message: error.message, details, cause: error });
  }
}

/** Converts AIDs, and lists of AIDs, to canonical form. */
function canonicalAids(part: Part, schema: TObject, values: Values, parse: ParseAid): void {
  for (const [key, member] of Object.entries(schema.properties)) {
    const value = values[key];
    if (isAid(member)) values[key] = canonicalAid(part, `/${key}`, value, parse);
    else if (Array.isArray(value) && isAid(itemsOf(member)))
      values[key] = value.map((item, i) => canonicalAid(part, `/${key}/${i}`, item, parse));
    if (values[key] === undefined) delete values[key];
  }
}

/** True for the schema of an ID in lower-case hex. */
function isHexId(schema: unknown): boolean {
  return /^\^\[0-9a-f\]\{\d+\}\$$/.test(String(memberOf(schema, 'pattern')));
}

/** Cleans pasted IDs, and lists of IDs. Other values stay and fail validation. */
function cleanIds(schema: TObject, values: Values): void {
  const clean = (value: unknown): unknown => (typeof value === 'string' ? cleanPastedId(value).toLowerCase() : value);
  for (const [key, member] of Object.entries(schema.properties)) {
    const value = values[key];
    if (isHexId(member) && value !== undefined) values[key] = clean(value);
    else if (Array.isArray(value) && isHexId(itemsOf(member))) values[key] = value.map(clean);
  }
}

/** True if a schema accepts a value. Only for values that clients send instead of leaving a member out. */
const accepts = (() => {
  const compiled = new WeakMap<TSchema, (value: unknown) => boolean>();
  return (schema: TSchema, value: null | ''): boolean => {
    if (isAid(schema)) return false;
    let check = compiled.get(schema);
    if (check === undefined) {
      const validator = Compile(schema);
      check = (one) => validator.Check(one);
      compiled.set(schema, check);
    }
    return check(value);
  };
})();

/** True if `withoutEmpty` must look at the members of a value. */
function hasEmptyOrNested(value: object): boolean {
  for (const member of Object.values(value)) if (member === '' || typeof member === 'object') return true;
  return false;
}

/**
 * Removes optional members that are null or empty, if their schema accepts neither: many clients send these instead of
 * leaving a member out.
 * @param json false: values are text, in which an empty text is a mistake
 */
function withoutEmpty(schema: TSchema | undefined, value: unknown, json: boolean): unknown {
  if (typeof value === 'object' && value !== null && !hasEmptyOrNested(value))
    return Array.isArray(value) ? value : { ...value };
  const items = itemsOf(schema);
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => withoutEmpty(items, item, json));
  const properties = memberOf(schema, 'properties');
  if (!isObject(value) || !isObject(properties)) return value;
  const required = listMember(schema, 'required');
  const kept: Values = { ...value };
  for (const [key, member] of Object.entries(properties as Record<string, TSchema>)) {
    if (!Object.hasOwn(kept, key)) continue;
    const sent = kept[key];
    if ((sent === null || (sent === '' && json)) && !required.includes(key) && !accepts(member, sent)) delete kept[key];
    else if (typeof sent === 'object') kept[key] = withoutEmpty(member, sent, json);
  }
  return kept;
}

function compilePart(
  part: Part,
  schema: TObject,
  { parse, wire }: { readonly parse: ParseAid; readonly wire: Wire },
): PartReader {
  // Compiled on first use: all two hundred would add 200 ms to the start.
  const compiled = lazy(() => Compile(schema));
  const aids = hasAid(schema);
  const members = Object.entries(schema.properties);
  const hasIds = members.some(([, member]) => isHexId(member) || isHexId(itemsOf(member)));
  // Other values of the path and query stay text.
  const converted = wire === 'text' && part !== 'body' ? members.filter(([, member]) => isConverted(member)) : [];
  return (value) => {
    const validator = compiled();
    if (!isObject(value)) throw invalid(part, '', 'must be a JSON object');
    // Copies own members only, without the prototype of the input.
    const values = withoutEmpty(schema, value, part === 'body' || wire === 'json') as Values;
    for (const [key, member] of converted) if (Object.hasOwn(values, key)) values[key] = fromText(member, values[key]);
    if (aids) canonicalAids(part, schema, values, parse);
    if (hasIds) cleanIds(schema, values);
    if (!validator.Check(values)) throw firstProblem(part, schema, validator.Errors(values));
    return values;
  };
}

function firstProblem(part: Part, schema: TObject, problems: readonly TLocalizedValidationError[]): SvcError {
  // The errors of `false` schemas and unions say less than the errors next to them.
  const problem = problems.find(({ keyword }) => keyword !== 'boolean' && keyword !== 'anyOf') ?? problems[0];
  if (problem === undefined) return invalid(part, '', 'is not valid');
  const { instancePath, keyword, params, message } = problem;
  if (keyword === 'additionalProperties')
    return unknownMembers(
      PART_NAMES[part],
      params.additionalProperties.map((key) => `${instancePath}/${key}`),
      schema,
    );
  if (keyword === 'required')
    return invalid(part, `${instancePath}/${String(params.requiredProperties[0])}`, 'is missing');
  return invalid(part, instancePath, message);
}

/**
 * Validates the input of an operation; compiled on first use. The returned function gives the flat input: path, query
 * and body together, with AIDs in canonical form. A body member that has the name of a path parameter gets the prefix
 * `body_`. With `wire` `text`, numbers and booleans of the path and query are parsed from text. It throws SvcError
 * `invalid_request` with the path of the error in its details, or `bad_aid`.
 */
export function compileInput(
  schemas: { readonly params: TObject; readonly query: TObject; readonly body: TObject },
  parse: ParseAid = parseAid,
  wire: Wire = 'text',
): (raw: RawInput) => Readonly<Record<string, unknown>> {
  const reading = { parse, wire };
  const params = compilePart('params', schemas.params, reading);
  const query = compilePart('query', schemas.query, reading);
  const body = compilePart('body', schemas.body, reading);
  const shares = Object.keys(schemas.body.properties).some((key) => bodyInputKey(key, schemas.params) !== key);
  const renamed = (sent: Values): Values =>
    Object.fromEntries(Object.entries(sent).map(([key, value]) => [bodyInputKey(key, schemas.params), value]));
  return (raw) => {
    const sent = body(raw.body === undefined ? {} : raw.body);
    return { ...(shares ? renamed(sent) : sent), ...query(raw.query), ...params(raw.params) };
  };
}
