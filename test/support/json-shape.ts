/** The shape of JSON documents: members and their types. */
import type { TSchema } from 'typebox';

/** Types by path, such as `tunnels[].id`: `null|string`, with a trailing `?` for optional members. */
export type Shape = Readonly<Record<string, string>>;

type Schema = Readonly<Record<string, unknown>>;

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly Schema[] {
  return Array.isArray(value) ? value.filter(isSchema) : [];
}

function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

/** The types of a schema itself, without its members. */
function typesOf(schema: Schema): readonly string[] {
  if (Object.hasOwn(schema, 'const')) return [typeOf(schema['const'])];
  if (Array.isArray(schema['enum'])) return schema['enum'].map(typeOf);
  const { type } = schema;
  const named = Array.isArray(type) ? type.map(String) : typeof type === 'string' ? [type] : ['any'];
  // Readers treat an integer as a number.
  return named.map((one) => (one === 'integer' ? 'number' : one));
}

/** @param loose members of the schema may be missing, because of alternatives */
function add(found: Map<string, Set<string>>, place: string, schema: Schema, optional: boolean, loose = false): void {
  const ways = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])];
  const several = ways.filter((way) => Object.hasOwn(way, 'properties')).length > 1;
  for (const way of ways) add(found, place, way, optional, loose || several);
  for (const part of listOf(schema['allOf'])) add(found, place, part, optional, loose);
  if (ways.length > 0 || listOf(schema['allOf']).length > 0) return;
  const types = found.get(place) ?? new Set();
  for (const type of typesOf(schema)) types.add(type);
  found.set(place, optional ? types.add('?') : types);
  const { properties, required, items, additionalProperties, patternProperties } = schema;
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  for (const [name, member] of Object.entries(isSchema(properties) ? properties : {}))
    if (isSchema(member)) add(found, `${place}.${name}`, member, loose || !needed.includes(name));
  if (isSchema(items)) add(found, `${place}[]`, items, false);
  const others = [additionalProperties, ...Object.values(isSchema(patternProperties) ? patternProperties : {})];
  for (const other of others) if (isSchema(other)) add(found, `${place}.*`, other, true);
}

/** The shape that a schema promises. */
export function shapeOf(schema: TSchema): Shape {
  const found = new Map<string, Set<string>>();
  add(found, '', JSON.parse(JSON.stringify(schema)) as Schema, false);
  const text = (types: Set<string>): string => {
    const named = [...types].filter((type) => type !== '?').sort();
    return `${named.join('|')}${types.has('?') ? '?' : ''}`;
  };
  return Object.fromEntries(
    [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([place, types]) => [place, text(types)]),
  );
}

/** Broken promises, each with its path. New members break nothing. */
export function brokenIn(promised: Shape, shape: Shape): string[] {
  return Object.entries(promised).flatMap(([place, types]) => {
    const now = shape[place];
    const name = place === '' ? 'the document' : place;
    if (now === undefined) return [`${name} is gone`];
    const before = types.replace('?', '').split('|');
    const more = now
      .replace('?', '')
      .split('|')
      .filter((type) => !before.includes(type));
    if (more.length > 0) return [`${name} was ${types}, and may be ${more.join(' or ')} now`];
    return now.endsWith('?') && !types.endsWith('?') ? [`${name} was always there, and may be missing now`] : [];
  });
}
