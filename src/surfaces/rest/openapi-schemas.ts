/**
 * Schemas for the OpenAPI document. Schemas that several operations share are named. Constraints that the code checks
 * (formats of AIDs and hex, ranges of integers) are added for generators and tests.
 */
import type { TSchema } from 'typebox';
import { MAX_AID_CHARS } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SERVICE_NAME_FORM } from '../../foundation/domain/services.ts';
import { isObject } from '../../foundation/json.ts';
import { lazy } from '../../foundation/lazy.ts';
import { MAX_SERVICE_NAME_CHARS } from '../../foundation/records/types.ts';
import { AclView, Agent, Profile } from '../../operations/agents.ts';
import { NodeStatus } from '../../operations/node.ts';
import { StoredObject } from '../../operations/objects.ts';
import { AidText, ErrorBody, Ok, Pending, Timestamp } from '../../operations/schemas.ts';
import { TunnelView } from '../../operations/tunnels.ts';

/** A JSON document. */
export type Document = Readonly<Record<string, unknown>>;

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
  Timestamp,
  Error: ErrorBody,
};

const nameOf = lazy(() => new Map(Object.entries(NAMED).map(([name, schema]) => [JSON.stringify(schema), name])));

/** Adds the constraints that code checks to a schema. */
function addConstraints(schema: Document, place: Place, key: string): Document {
  const { type, format, pattern, maximum, minimum } = schema;
  if (format === 'aid') return { ...schema, pattern: AID_PATTERN };
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
export function documentSchema(schema: Document, place: Place = 'json', key = ''): Document {
  const name = place !== 'text' ? nameOf().get(JSON.stringify(schema)) : undefined;
  return name === undefined ? inside(schema, place, key) : { $ref: `#/components/schemas/${name}` };
}

/** The shared schemas by name. */
export function sharedSchemas(): Document {
  return Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, inside({ ...schema }, 'json', '')]));
}
