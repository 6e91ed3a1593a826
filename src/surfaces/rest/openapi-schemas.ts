/**
 * Schemas as the OpenAPI document shows them: those that several operations share go by a name, and what the schemas leave
 * to the code that reads them (the forms of AIDs and of hex, the range of whole numbers) is said for generators and tests.
 */
import type { TSchema } from 'typebox';
import { MAX_AID_CHARS } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SERVICE_NAME_FORM } from '../../foundation/domain/service-name.ts';
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

/** Where a schema stands: text of a path or query is read as a number of at most 15 digits. */
type Place = 'text' | 'json' | 'answer';

/** Highest whole number in a path or query. */
const MAX_TEXT_INTEGER = 999_999_999_999_999;
/** Text of an AID, of every kind. */
const AID_PATTERN = `^(?:aid1|AID1|0x|bc1|BC1|pr1|PR1|1|did:key:z)[0-9A-Za-z]{20,${MAX_AID_CHARS}}$`;
const HEX_PATTERN = '^(?:0[xX])?(?:[0-9a-fA-F]{2})*$';

/** Names of shared schemas. What holds others comes before them. */
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

/** What a schema leaves to the code that reads it. */
function tightened(schema: Document, place: Place, key: string): Document {
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

function shownMember(value: unknown, place: Place, key: string, isProperties: boolean): unknown {
  if (Array.isArray(value)) return value.map((one) => shownMember(one, place, key, false));
  if (!isObject(value)) return value;
  if (isProperties)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shownMember(one, place, name, false)]));
  return shown(value, place, key);
}

function inside(schema: Document, place: Place, key: string): Document {
  const members = Object.entries(schema).map(([name, value]) => [
    name,
    ['default', 'const', 'enum'].includes(name) ? value : shownMember(value, place, key, name === 'properties'),
  ]);
  return tightened(Object.fromEntries(members), place, key);
}

/** A schema as the document shows it. @param key the member that it belongs to */
export function shown(schema: Document, place: Place = 'json', key = ''): Document {
  const name = place !== 'text' ? nameOf().get(JSON.stringify(schema)) : undefined;
  return name === undefined ? inside(schema, place, key) : { $ref: `#/components/schemas/${name}` };
}

/** The shared schemas, by name. */
export function sharedSchemas(): Document {
  return Object.fromEntries(Object.entries(NAMED).map(([name, schema]) => [name, inside({ ...schema }, 'json', '')]));
}
