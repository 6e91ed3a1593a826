/** The shape of a request or response for the REST page: `{aid:AID, path:"direct"|"lan", note?:string}`. */
import { isObject } from '../src/foundation/json.ts';

/** A schema of the table as plain JSON. */
export type Schema = Readonly<Record<string, unknown>>;

/** Width of a page of code, characters. */
const WIDTH = 100;

type NameOf = (schema: Schema) => string | undefined;

function named(schema: Schema): string {
  const { type, format, contentEncoding } = schema;
  if (format === 'aid') return 'AID';
  if (format === 'date-time') return 'timestamp';
  if (contentEncoding === 'base64') return 'base64';
  return typeof type === 'string' ? type : 'any';
}

/** Objects with fixed members, whose shapes may need several lines. */
function propertiesOf(schema: Schema): [name: string, member: Schema][] {
  const { properties, required } = schema;
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  return Object.entries(isObject(properties) ? properties : {}).flatMap(([name, member]) =>
    isObject(member) ? [[needed.has(name) ? name : `${name}?`, member] as [string, Schema]] : [],
  );
}

/**
 * @param nameOf the name of a shape that the page describes elsewhere
 * @param indent of the lines after the first
 */
export function shapeText(schema: Schema, nameOf: NameOf, indent = ''): string {
  const { anyOf, items, patternProperties } = schema;
  if ('const' in schema) return JSON.stringify(schema['const']);
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => JSON.stringify(value)).join('|');
  const name = nameOf(schema);
  if (name !== undefined) return name;
  if (Array.isArray(anyOf))
    return anyOf
      .filter(isObject)
      .map((one) => shapeText(one, nameOf, indent))
      .join('|');
  if (schema['type'] === 'array') return `[${isObject(items) ? shapeText(items, nameOf, indent) : 'any'}]`;
  const properties = propertiesOf(schema);
  if (properties.length > 0) return objectText(properties, nameOf, indent);
  const [value] = isObject(patternProperties) ? Object.values(patternProperties) : [];
  return isObject(value) && Object.keys(value).length > 0 ? `{…:${shapeText(value, nameOf, indent)}}` : named(schema);
}

function objectText(properties: readonly [string, Schema][], nameOf: NameOf, indent: string): string {
  const inner = `${indent}  `;
  const members = properties.map(([name, member]) => {
    const standard = 'default' in member ? `=${JSON.stringify(member['default'])}` : '';
    return `${name}:${shapeText(member, nameOf, inner)}${standard}`;
  });
  const flat = `{${members.join(', ')}}`;
  if (!flat.includes('\n') && indent.length + flat.length <= WIDTH) return flat;
  const lines: string[] = [];
  for (const member of members) {
    const last = lines.at(-1);
    const joined = `${last ?? ''}, ${member}`;
    if (last === undefined || joined.includes('\n') || inner.length + joined.length > WIDTH) lines.push(member);
    else lines[lines.length - 1] = joined;
  }
  return `{\n${lines.map((line) => inner + line).join(',\n')}\n${indent}}`;
}
