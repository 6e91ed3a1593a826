/**
 * The document that moves an agent to another node, in JSON. Times are Unix milliseconds where
 * nothing else is said. Format: docs/moving.md, "The document".
 */
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { DIGEST_BYTES } from '../records/digest.ts';
import { REMOVAL_TOKEN_BYTES } from '../records/notes.ts';

/**
 * Largest document, bytes. An agent whose parts are all at their own limits has one of about 110 MiB: notes 33
 * (24 in base64: a full mailbox, and what was handed out but not acknowledged), ids of notes 10, what waits in chats
 * 16, their logs 16, contacts 10, rooms 22.
 */
export const MAX_AGENT_DOCUMENT_BYTES: number = 128 * 1024 * 1024;
/** Bytes of conversations that go along beside what waits to be sent. */
export const MAX_MOVED_CHAT_BYTES: number = 16 * 1024 * 1024;
/** Entries of one conversation that go along beside what waits to be sent, the newest ones. */
export const MAX_MOVED_CHAT_ENTRIES = 2000;
/** Bytes of room entries that go along; rooms beyond it are fetched from their members. */
export const MAX_MOVED_ROOM_BYTES: number = 16 * 1024 * 1024;
/** Message ids of notes that go along, the newest ones. */
export const MAX_MOVED_SEEN = 100_000;

/** Members of each list: what the parts of an agent are limited to anyway. */
const MAX_KEPT_RECORDS = 96;
const MAX_ACCESS_ENTRIES = 1000;
const MAX_TUNNELS = 256;
const MAX_NOTE_KEYS = 32;
const MAX_NOTES = 2000;
const MAX_CONVERSATIONS = 20_000;
const MAX_ENTRIES = 250_000;
/** With those that the agent left. */
const MAX_ROOMS = 2000;
const MAX_INVITATIONS = 500;
const MAX_INVITED = 1000;
const MAX_HINTS = 16;
/** Latest time: the end of the year 9999. */
const MAX_TIME_MS = 253_402_300_799_999;
/** Longest base64 of a body, a payload, an entry. */
const MAX_BLOB_CHARS = 64 * 1024;

function part<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false });
}

function hex(bytes: number) {
  return Type.String({ pattern: `^[0-9a-f]{${bytes * 2}}$` });
}

function orNull<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Time = Type.Integer({ minimum: 0, maximum: MAX_TIME_MS });
const Text = Type.String({ maxLength: 64 * 1024 });
const Label = Type.String({ maxLength: 64 });
const AidText = Type.String({ format: 'aid', maxLength: 128 });
const Blob = Type.String({ contentEncoding: 'base64', maxLength: MAX_BLOB_CHARS });

export const RecordsPart = part({
  seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'The last number given out.' }),
  kept: Type.Array(
    part({
      type: Type.Integer({ minimum: 1, maximum: 0x10 }),
      name: Type.String({ maxLength: 128, description: 'The service name of a service record.' }),
      payload_base64: Blob,
      ttl: Type.Integer({ minimum: 1, maximum: 30 * 24 * 3600, description: 'Seconds.' }),
    }),
    { maxItems: MAX_KEPT_RECORDS },
  ),
});

export const AccessPart = part({
  default: Type.Enum(['public', 'deny']),
  salt_hex: hex(16),
  allow: Type.Array(
    part({
      aid: Type.Optional(AidText),
      secret_hash_hex: Type.Optional(hex(32)),
      label: Type.Optional(Label),
      created_at: Time,
      expires_at: Type.Optional(Time),
    }),
    { maxItems: MAX_ACCESS_ENTRIES, description: 'Each with aid or secret_hash_hex.' },
  ),
  deny: Type.Array(part({ aid: AidText, created_at: Time }), { maxItems: MAX_ACCESS_ENTRIES }),
});

export const TunnelsPart = Type.Array(
  part({
    remote_aid: AidText,
    local_port: Type.Integer({ minimum: 1, maximum: 65535 }),
    idle_timeout_sec: Type.Integer({ minimum: -1, maximum: 30 * 24 * 3600 }),
    disable_relay: Type.Boolean(),
    access_token: Type.Optional(Type.String({ maxLength: 512 })),
  }),
  { maxItems: MAX_TUNNELS },
);

export const NotesPart = part({
  keys: Type.Array(part({ private_key_hex: hex(32), created_at: Type.Integer({ minimum: 0, maximum: MAX_TIME_MS }) }), {
    maxItems: MAX_NOTE_KEYS,
    description: 'What opens notes; created_at in Unix seconds.',
  }),
  waiting: Type.Array(
    part({
      message_id: hex(32),
      sender: AidText,
      msg_type: Type.Integer({ minimum: 0, maximum: 0xffff_ffff }),
      body_base64: Blob,
      sent_at: Time,
      received_at: Time,
      digest_hex: hex(DIGEST_BYTES),
      token_hex: hex(REMOVAL_TOKEN_BYTES),
    }),
    { maxItems: MAX_NOTES },
  ),
  seen: Type.Array(part({ id: hex(32), until: Time }), {
    maxItems: MAX_MOVED_SEEN,
    description: 'Ids of messages that are not shown again.',
  }),
});

const Stream = orNull(hex(16));

export const ChatPart = Type.Array(
  part({
    peer: AidText,
    state: Type.Enum(['none', 'friends', 'out_pending', 'in_pending', 'blocked']),
    since: Time,
    note: Type.String({ maxLength: 560 }),
    expires_at: orNull(Time),
    out_stream: Stream,
    acked: Count,
    in_stream: Stream,
    received: Count,
    control: orNull(Type.Enum(['request', 'accept', 'gone'])),
    control_until: orNull(Time),
    gone_out: Stream,
    gone_in: Stream,
    last_seq: Count,
    last_at: orNull(Time),
    read_cursor: Count,
    entries: Type.Array(
      part({
        seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
        id: hex(16),
        dir: Type.Enum(['in', 'out']),
        status: Type.Enum(['received', 'queued', 'sent', 'dropped']),
        at: Time,
        text: Type.Optional(Text),
        file: Type.Optional(part({ object_id: hex(32), name: Type.String({ maxLength: 255 }), size: Count })),
      }),
      { maxItems: MAX_ENTRIES },
    ),
  }),
  { maxItems: MAX_CONVERSATIONS },
);

const Way = {
  group_id: hex(32),
  creator: AidText,
  title: Type.String({ maxLength: 256 }),
  secret_hex: orNull(hex(32)),
};

export const RoomsPart = part({
  joined: Type.Array(
    part({
      ...Way,
      state: Type.Enum(['joining', 'member', 'left', 'removed']),
      hints: Type.Array(AidText, { maxItems: MAX_HINTS }),
      read_seq: Count,
      last_at: Time,
      invited: Type.Array(part({ target: AidText, until: Time }), { maxItems: MAX_INVITED }),
      entries_base64: Type.Array(Blob, {
        maxItems: MAX_ENTRIES,
        description: 'Signed entries in their order here; none: the room is fetched from its members.',
      }),
    }),
    { maxItems: MAX_ROOMS },
  ),
  invitations: Type.Array(part({ ...Way, inviter: AidText, at: Time }), { maxItems: MAX_INVITATIONS }),
});

export const AgentDocument = part({
  svcd_agent: Type.Literal(1, { description: 'Version of the format.' }),
  svcd_version: Type.String({ maxLength: 64, description: 'Of the daemon that wrote it.' }),
  exported_at: Time,
  aid: AidText,
  operational_private_key_hex: Type.String({ maxLength: 256 }),
  delegation_proof_hex: Type.String({ maxLength: 8192 }),
  service_tcp: Type.String({ maxLength: 300 }),
  label: Type.Optional(Label),
  records: RecordsPart,
  access: Type.Optional(AccessPart),
  tunnels: TunnelsPart,
  notes: NotesPart,
  chat: ChatPart,
  rooms: RoomsPart,
  left_out: part({
    chat_entries: Count,
    room_copies: Type.Array(hex(32), { maxItems: MAX_ROOMS }),
    objects: Count,
  }),
});

export type AgentDocument = Static<typeof AgentDocument>;
export type RecordsPart = Static<typeof RecordsPart>;
export type AccessPart = Static<typeof AccessPart>;
export type TunnelsPart = Static<typeof TunnelsPart>;
export type NotesPart = Static<typeof NotesPart>;
export type ChatPart = Static<typeof ChatPart>;
export type RoomsPart = Static<typeof RoomsPart>;
