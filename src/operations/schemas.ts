/** Schemas that several declarations share. */
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { AID_FORMAT } from '../foundation/domain/agents.ts';
import { MAX_NAT_TYPE, NAT_TYPES } from '../foundation/domain/directory.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { memberOf } from '../foundation/json.ts';

/** Longest id of a thing that this daemon has named, characters. */
const MAX_ID_CHARS = 64;
/** Longest cursor of a page, characters. */
const MAX_CURSOR_CHARS = 32;

/** An object that refuses keys it does not know: the form of every request schema. */
export function closed<P extends TProperties>(properties: P, description?: string): TObject<P> {
  return Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

/**
 * A body as the OpenAPI document shows it, of which exactly one of some members is sent. Its operation checks that, as it
 * can say more about it than a schema.
 * @param mayBeNone it may be sent without any of them
 */
export function exactlyOne(body: TObject, names: readonly string[], mayBeNone = false): TObject {
  const each = names.map((name) => ({ required: [name] }));
  return Object.assign({ ...body }, { oneOf: mayBeNone ? [{ not: { anyOf: each } }, ...each] : each });
}

/** Path, query or body of an operation that takes none. */
export const NONE = closed({});

/** A value or null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** One of the texts of a list. */
export function oneOf<const T extends string[]>(
  values: readonly [...T],
  options: { readonly description?: string } = {},
) {
  return Type.Enum(values, { type: 'string', ...options });
}

/** Path parameter of a thing that this daemon has named: an entry, a tunnel. */
export const Id = Type.String({ minLength: 1, maxLength: MAX_ID_CHARS });

/** Where a page begins: `next_cursor` of the one before. */
export const Cursor = Type.String({ maxLength: MAX_CURSOR_CHARS, description: '`next_cursor` of the page before.' });

/** How strangers reach a node, as it has been seen. */
export const NatType = Type.Integer({
  minimum: 0,
  maximum: MAX_NAT_TYPE,
  description: `${NAT_TYPES.map((type, i) => `${i} ${type}`).join(', ')}.`,
});

/** In input a surface has brought it into canonical form before it runs an operation. */
export const AidText = Type.Unsafe<Aid>(
  Type.String({
    format: AID_FORMAT,
    description: 'Agent identifier: `aid1…`, its `did:key:z6Mk…`, an Ethereum `0x…` or a Paralism address.',
  }),
);

/** True for the schema of an AID. */
export function isAid(schema: TSchema | undefined): boolean {
  return memberOf(schema, 'format') === AID_FORMAT;
}

/** True where a member of an object is an AID, or a list of them. */
export function hasAid({ properties }: TObject): boolean {
  return Object.values(properties).some((member) => isAid(member) || isAid(itemsOf(member)));
}

/** The schema of what a list holds. */
export function itemsOf(schema: TSchema | undefined): TSchema | undefined {
  return memberOf(schema, 'items') as TSchema | undefined;
}

/** Path parameters of the operations on one agent. */
export const AidParams = closed({ aid: AidText });

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });

export const Base64 = Type.String({ contentEncoding: 'base64', description: 'Standard base64.' });

export const Ok = Type.Object({ ok: Type.Literal(true) });

/** A document whose members are not fixed: diagnostics. */
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** An object of any members. */
export function freeForm(description: string) {
  return Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { additionalProperties: true, description }));
}

/** Waiting things by AID, left out where nothing waits. */
export const Pending = Type.Record(
  Type.String(),
  Type.Object({
    mailbox: Type.Integer({ minimum: 0 }),
    chat_invites: Type.Integer({ minimum: 0 }),
    chat_unread: Type.Integer({ minimum: 0 }),
  }),
  { description: 'Local counters of agents that have something waiting, by AID.' },
);

/** The body of every error answer. */
export const ErrorBody = Type.Object({
  error: Type.String({ description: 'A stable code in snake_case.' }),
  message: Type.String({ description: 'What happened and what to do.' }),
  details: Type.Optional(AnyObject),
});

export type ErrorBodyValue = Static<typeof ErrorBody>;
