/** Schemas shared by several declarations. */
import { type Static, type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { AID_FORMAT } from '../foundation/domain/agents.ts';
import { MAX_NAT_TYPE, NAT_TYPES } from '../foundation/domain/directory.ts';
import { MAX_WAIT_S } from '../foundation/domain/events.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { memberOf } from '../foundation/json.ts';
import { MAX_WAKES_WITHIN_S } from '../foundation/records/types.ts';

/** Longest ID that this daemon assigns, characters. */
const MAX_ID_CHARS = 64;
/** Longest page cursor, characters. */
const MAX_CURSOR_CHARS = 32;

/** An object that rejects unknown keys. Every request schema is one. */
export function closed<P extends TProperties>(properties: P, description?: string): TObject<P> {
  return Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

/**
 * A body in the OpenAPI document with exactly one of some members. The operation itself checks this, because it can
 * explain the error better than a schema.
 * @param mayBeNone a body without all these members is valid
 */
export function exactlyOne(body: TObject, names: readonly string[], mayBeNone = false): TObject {
  const each = names.map((name) => ({ required: [name] }));
  return Object.assign({ ...body }, { oneOf: mayBeNone ? [{ not: { anyOf: each } }, ...each] : each });
}

/** Path, query or body of an operation without one. */
export const NONE = closed({});

/** A value or null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** One of the given texts. */
export function oneOf<const T extends string[]>(
  values: readonly [...T],
  options: { readonly description?: string } = {},
) {
  return Type.Enum(values, { type: 'string', ...options });
}

/** Path parameter with an ID that this daemon assigned, such as a tunnel ID. */
export const Id = Type.String({ minLength: 1, maxLength: MAX_ID_CHARS });

/** Start of a page: `next_cursor` of the previous one. */
export const Cursor = Type.String({ maxLength: MAX_CURSOR_CHARS, description: '`next_cursor` of the previous page.' });

/** Query member of reads that can wait for something new. */
export const WaitS = Type.Optional(
  Type.Integer({ minimum: 0, maximum: MAX_WAIT_S, description: 'Seconds to wait for news.' }),
);

/** The text of bytes in the same result. */
export const BodyText = Type.Optional(Type.String({ description: 'The body, if it is text in UTF-8.' }));

/** NAT type of a node as observed. */
export const NatType = Type.Integer({
  minimum: 0,
  maximum: MAX_NAT_TYPE,
  description: `${NAT_TYPES.map((type, i) => `${i} ${type}`).join(', ')}.`,
});

/** Surfaces convert it to canonical form before an operation runs. */
export const AidText = Type.Unsafe<Aid>(
  Type.String({
    format: AID_FORMAT,
    description:
      'Agent ID: `aid1…`, its `did:key:z6Mk…`, an Ethereum `0x…` or a Paralism address. Requests may use a label instead.',
  }),
);

/** True for the schema of an AID. */
export function isAid(schema: TSchema | undefined): boolean {
  return memberOf(schema, 'format') === AID_FORMAT;
}

/** True if an object has an AID or a list of AIDs as a member. */
export function hasAid({ properties }: TObject): boolean {
  return Object.values(properties).some((member) => isAid(member) || isAid(itemsOf(member)));
}

/** The schema of the items of a list. */
export function itemsOf(schema: TSchema | undefined): TSchema | undefined {
  return memberOf(schema, 'items') as TSchema | undefined;
}

/** Path parameters of the operations on one agent. */
export const AidParams = closed({ aid: AidText });

/** The start time of an agent that does not always run. */
export const WakesWithin = Type.Integer({
  minimum: 1,
  maximum: MAX_WAKES_WITHIN_S,
  description: 'It starts when it is called, usually within these seconds.',
});

export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601, UTC.' });

/** The description of base64 that needs no other one. */
export const BASE64_TEXT = 'Standard base64.';
export const Base64 = Type.String({ contentEncoding: 'base64', description: BASE64_TEXT });

export const Ok = Type.Object({ ok: Type.Literal(true) });

/** A document without fixed members, for diagnosis. */
export const AnyObject = Type.Record(Type.String(), Type.Unknown());

/** An object with any members. */
export function freeForm(description: string) {
  return Type.Unsafe<Readonly<Record<string, unknown>>>(Type.Object({}, { additionalProperties: true, description }));
}

/** Counters by AID, without agents that have nothing pending. */
export const Pending = Type.Record(
  Type.String(),
  Type.Object({
    mailbox: Type.Integer({ minimum: 0 }),
    chat_invites: Type.Integer({ minimum: 0 }),
    chat_unread: Type.Integer({ minimum: 0 }),
    access_requests: Type.Optional(Type.Integer({ minimum: 0, description: 'Callers that ask for access.' })),
  }),
  { description: 'Pending items of the local agents, by AID.' },
);

/** The body of every error response. */
export const ErrorBody = Type.Object({
  error: Type.String({ description: 'A stable code in snake_case.' }),
  message: Type.String({ description: 'The failure and a remedy.' }),
  details: Type.Optional(AnyObject),
});

export type ErrorBodyValue = Static<typeof ErrorBody>;
