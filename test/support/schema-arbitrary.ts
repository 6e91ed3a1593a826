/** Values that match a JSON Schema, and values that nearly match, for fuzzing. */

import type { Arbitrary, JsonValue } from 'fast-check';
import * as fc from 'fast-check';

import { SERVICE_NAME_FORMAT } from '../../src/foundation/domain/directory.ts';

export type Schema = Readonly<Record<string, unknown>>;

export interface ArbitraryOptions {
  /** Valid AIDs to use in addition to invented ones. */
  readonly aids: readonly string[];
}

/** Strings that have caused bugs before. */
const HOSTILE = [
  '',
  ' ',
  '.',
  '..',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  '\u0000',
  '\u001b[31m',
  '\ud800',
  '%00',
  "' OR 1=1 --",
  'a'.repeat(5_000),
  '\u202e\u0301'.repeat(50),
  'http://127.0.0.1:1',
  '0x',
  '1e999',
];

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function numberOf(schema: Schema, key: string, otherwise: number): number {
  const value = schema[key];
  return typeof value === 'number' ? value : otherwise;
}

function text(schema: Schema, { aids }: ArbitraryOptions): Arbitrary<string> {
  if (schema['format'] === 'aid' && aids.length > 0) return fc.constantFrom(...aids);
  if (schema['format'] === 'date-time')
    return fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString());
  if (schema['format'] === SERVICE_NAME_FORMAT) return fc.stringMatching(/^[a-z0-9]{1,8}(?:[._-][a-z0-9]{1,8}){0,3}$/u);
  if (schema['contentEncoding'] === 'base64')
    return fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('base64'));
  if (typeof schema['pattern'] === 'string') return fc.stringMatching(new RegExp(schema['pattern'], 'u'));
  const minLength = numberOf(schema, 'minLength', 0);
  return fc.string({
    minLength,
    maxLength: Math.min(numberOf(schema, 'maxLength', 40), minLength + 40),
    unit: 'grapheme',
  });
}

/** The alternatives of a `oneOf`. */
function formsOf(schema: Schema): readonly string[] {
  const forms = Array.isArray(schema['oneOf']) ? schema['oneOf'].filter(isSchema) : [];
  return forms.flatMap(({ required }) => (Array.isArray(required) ? required.map(String) : []));
}

function object(schema: Schema, options: ArbitraryOptions): Arbitrary<JsonValue> {
  const properties = isSchema(schema['properties']) ? schema['properties'] : {};
  const forms = formsOf(schema);
  const required = new Set([...(Array.isArray(schema['required']) ? schema['required'] : []), ...forms]);
  // With many optional members, most are absent. Otherwise nearly every object would contain a rejected one.
  const absent = Math.max(1, Object.keys(properties).length - required.size - 5);
  const members = Object.entries(properties).map(([name, member]): [string, Arbitrary<JsonValue | undefined>] => {
    const value = isSchema(member) ? fitting(member, options) : fc.jsonValue();
    const maybe = fc.oneof(
      { weight: 5, arbitrary: value },
      { weight: absent * absent, arbitrary: fc.constant(undefined) },
    );
    return [name, required.has(name) ? value : maybe];
  });
  const each = fc.tuple(...members.map(([name, value]) => value.map((v) => [name, v] as const)));
  const fixed = fc.tuple(each, fc.nat()).map(([pairs, n]) => {
    const others = new Set(forms.filter((_, i) => i !== n % forms.length));
    return Object.fromEntries(
      pairs.filter((pair): pair is [string, JsonValue] => pair[1] !== undefined && !others.has(pair[0])),
    );
  });
  const [pattern] = Object.values(isSchema(schema['patternProperties']) ? schema['patternProperties'] : {});
  if (!isSchema(pattern)) return fixed;
  const more = fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fitting(pattern, options), { maxKeys: 3 });
  return fc.tuple(fixed, more).map(([known, others]) => ({ ...others, ...known }));
}

/** Values that match the schema. */
export function fitting(schema: Schema, options: ArbitraryOptions): Arbitrary<JsonValue> {
  if ('const' in schema) return fc.constant(schema['const'] as JsonValue);
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as JsonValue[]));
  if (Array.isArray(schema['anyOf']))
    return fc.oneof(...schema['anyOf'].filter(isSchema).map((variant) => fitting(variant, options)));
  switch (schema['type']) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: numberOf(schema, 'minimum', -1000), max: numberOf(schema, 'maximum', 1_000_000) });
    case 'number':
      return fc.double({
        min: numberOf(schema, 'minimum', -1000),
        max: numberOf(schema, 'maximum', 1_000_000),
        noNaN: true,
      });
    case 'string':
      return text(schema, options);
    case 'array': {
      const items = isSchema(schema['items']) ? fitting(schema['items'], options) : fc.jsonValue();
      const minLength = numberOf(schema, 'minItems', 0);
      return fc.array(items, { minLength, maxLength: Math.min(numberOf(schema, 'maxItems', 4), minLength + 4) });
    }
    case 'object':
      return object(schema, options);
    default:
      return fc.jsonValue();
  }
}

/** Any JSON, hostile values first. */
export const anything: Arbitrary<JsonValue> = fc.oneof(
  fc.constantFrom<JsonValue>(...HOSTILE),
  fc.constantFrom<JsonValue>(null, true, 0, -1, 1.5, 2 ** 53, -1e308, [], {}, [[]], [null]),
  fc.jsonValue({ maxDepth: 3 }),
);

/** A value with one member replaced, removed or added. */
export function damaged(value: JsonValue, at: number, what: JsonValue): JsonValue {
  if (Array.isArray(value) && value.length > 0 && at > 0) {
    const index = at % value.length;
    return value.map((item, i) => (i === index ? damaged(item, at >> 3, what) : item));
  }
  if (!isSchema(value)) return what;
  const entries = Object.entries(value) as [string, JsonValue][];
  if (entries.length === 0 || at % 5 === 0) return Object.fromEntries([...entries, [`unknown${at}`, what]]);
  const index = at % entries.length;
  if (at % 5 === 1) return Object.fromEntries(entries.filter((_, i) => i !== index));
  return Object.fromEntries(entries.map(([key, v], i) => [key, i === index ? damaged(v, at >> 3, what) : v]));
}

/** Values that match the schema except in one place. */
export function nearlyFitting(schema: Schema, options: ArbitraryOptions): Arbitrary<JsonValue> {
  return fc
    .tuple(fitting(schema, options), fc.nat(10_000), anything)
    .map(([value, at, what]) => damaged(value, at, what));
}
