/** Generates examples for all requests and responses of the OpenAPI document from their schemas. */
import { isObject } from '../../foundation/json.ts';
import type { Document } from './openapi-schemas.ts';

const AID = 'aid1fj66ha4d08alt2auet7vy6wctnfx28k5hzzmtp5lysdwmu99hg5spq62xc';
/** The did:key of that agent. */
const DID = 'did:key:z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG';
const HASH_DIGITS = 64;
/** Deeper than any schema, so that recursive schemas end. */
const MAX_DEPTH = 12;

/** Example values by field name. */
const BY_NAME: Readonly<Record<string, string>> = {
  listen: '127.0.0.1:40123',
  tunnel: '127.0.0.1:40123',
  service_tcp: '127.0.0.1:8080',
  endpoints: 'quic://192.0.2.1:4122',
  path: '/',
  method: 'GET',
  kind: 'msg',
  cursor: '7',
  next_cursor: '7',
};

function text(schema: Document, key: string): string {
  const { format, pattern, contentEncoding, minLength } = schema;
  if (format === 'aid') return AID;
  if (format === 'service-name') return 'lang.translate';
  if (typeof pattern === 'string' && pattern.startsWith('^did:key:')) return DID;
  if (format === 'date-time') return '2026-11-22T20:00:00.000Z';
  if (contentEncoding === 'base64') return Buffer.from('hello').toString('base64');
  const digits = typeof pattern === 'string' ? /\[0-9a-f\]\{(\d+)\}\$$/.exec(pattern)?.[1] : undefined;
  if (digits !== undefined) return '9f'.repeat(Number(digits) / 2);
  if (key.endsWith('_hex')) return '9f'.repeat(HASH_DIGITS / 2);
  if (key.endsWith('_base64')) return Buffer.from('hello').toString('base64');
  return (
    BY_NAME[key] ?? (typeof minLength === 'number' && minLength > key.length ? 'x'.repeat(minLength) : key || 'text')
  );
}

function number({ minimum, type }: Document): number {
  const least = typeof minimum === 'number' ? minimum : 0;
  return type === 'integer' ? Math.max(least, 1) : Math.max(least, 1.5);
}

/**
 * A value that matches a schema.
 * @param shared the schemas that it may refer to
 */
export function schemaExample(schema: Document, shared: Document, key = '', depth = 0): unknown {
  const { $ref, anyOf, allOf, type, properties, items } = schema;
  if (typeof $ref === 'string') return schemaExample(named($ref, shared), shared, key, depth + 1);
  if ('const' in schema) return schema['const'];
  if ('default' in schema) return schema['default'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  const [first]: unknown[] = Array.isArray(anyOf) ? anyOf : Array.isArray(allOf) ? allOf : [];
  if (isObject(first)) return schemaExample(first, shared, key, depth + 1);
  switch (type) {
    case 'string':
      return text(schema, key);
    case 'integer':
    case 'number':
      return number(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return isObject(items) && depth < MAX_DEPTH ? [schemaExample(items, shared, key, depth + 1)] : [];
    default:
      return isObject(properties) ? object(schema, properties, shared, depth) : {};
  }
}

function object(schema: Document, properties: Document, shared: Document, depth: number): Document {
  const [form]: unknown[] = Array.isArray(schema['oneOf']) ? schema['oneOf'] : [];
  const required = new Set([schema, form].flatMap(requiredOf));
  const members = Object.entries(properties).flatMap(([name, member]) => {
    const isShown = required.has(name) || required.size === 0;
    return isObject(member) && isShown && depth < MAX_DEPTH
      ? [[name, schemaExample(member, shared, name, depth + 1)]]
      : [];
  });
  return Object.fromEntries(members);
}

function requiredOf(schema: unknown): unknown[] {
  return isObject(schema) && Array.isArray(schema['required']) ? schema['required'] : [];
}

function named(ref: string, shared: Document): Document {
  const schema = shared[ref.slice(ref.lastIndexOf('/') + 1)];
  return isObject(schema) ? schema : {};
}
