/** Shortens schemas: an assistant pays for every word of the tool list in every conversation. */
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { isObject } from '../../foundation/json.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Nesting depth of output schemas. Deeper objects are not described. */
const MAX_OUTPUT_DEPTH = 2;

/**
 * Keywords that an output schema does not need. Results may have more members: `pending`, and the mark of foreign text.
 */
const OUTPUT_NOISE: ReadonlySet<string> = new Set([
  'description',
  'format',
  'contentEncoding',
  'default',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'patternProperties',
  'additionalProperties',
]);

function plain(schema: TSchema | JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema)) as JsonSchema;
}

/**
 * Converts `anyOf` of constants to `enum`. Other unions stay: type lists are shorter, but not all clients support them.
 */
function shortUnion(options: readonly unknown[]): JsonSchema | undefined {
  const objects = options.filter(isObject);
  return objects.every((one) => 'const' in one) ? { enum: objects.map((one) => one['const']) } : undefined;
}

function members(schema: JsonSchema, change: (value: JsonSchema) => JsonSchema): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, isObject(value) ? change(value) : value]),
  );
}

function walk(schema: JsonSchema, change: (schema: JsonSchema, depth: number) => JsonSchema, depth = 1): JsonSchema {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(change(schema, depth))) {
    if (key === 'properties' || key === 'patternProperties')
      result[key] = isObject(value) ? members(value, (one) => walk(one, change, depth + 1)) : value;
    else if (Array.isArray(value) && key === 'anyOf')
      result[key] = value.map((one: unknown) => (isObject(one) ? walk(one, change, depth) : one));
    else result[key] = isObject(value) && key === 'items' ? walk(value, change, depth) : value;
  }
  const { anyOf, ...rest } = result;
  const short = Array.isArray(anyOf) ? shortUnion(anyOf) : undefined;
  return short === undefined ? result : { ...rest, ...short };
}

/** The type of a constant is implied by its value. */
function isConstant(schema: JsonSchema): boolean {
  return 'const' in schema || 'enum' in schema;
}

/** The schema of a result: names, types, and required top-level members. */
export function compactOutput(schema: TSchema): JsonSchema {
  return walk(plain(schema), (one, depth) => {
    if (depth > MAX_OUTPUT_DEPTH && one['type'] === 'object') return { type: 'object' };
    const noise = (key: string) =>
      OUTPUT_NOISE.has(key) || (key === 'type' && isConstant(one)) || (key === 'required' && depth > 1);
    return Object.fromEntries(Object.entries(one).filter(([key]) => !noise(key)));
  });
}

/** True if the parameter name, its pattern or the server instructions already express the description. */
function isDescribedElsewhere(schema: JsonSchema): boolean {
  return schema['format'] === AID_FORMAT || schema['pattern'] === SHA256_PATTERN;
}

/** The schema of arguments: all limits, and descriptions that add information. */
export function compactInput(schema: JsonSchema): JsonSchema {
  return walk(plain(schema), (one) => {
    if (one['format'] === SERVICE_NAME_FORMAT) {
      const { format: _ours, ...known } = one;
      return known;
    }
    if (!isDescribedElsewhere(one)) return one;
    const { format: _format, description: _description, ...rest } = one;
    return rest;
  });
}
