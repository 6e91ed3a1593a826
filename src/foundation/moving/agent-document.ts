/**
 * The document that moves an agent to another node, in JSON. Times are Unix milliseconds unless stated otherwise.
 * Format: docs/moving.md, "The document".
 */
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { MAX_CARD_BYTES } from '../cards/card.ts';
import {
  ACCESS_POLICIES,
  MAX_ACCESS_TOKEN_CHARS,
  MAX_ENTRY_TOOLS,
  MAX_LABEL_CHARS,
  MAX_LIST_ENTRIES,
  MAX_TOOL_NAME_CHARS,
  SECRET_HASH_BYTES,
  SECRET_SALT_BYTES,
  TOOL_NAME_PATTERN,
} from '../domain/access.ts';
import { MAX_AID_CHARS, MAX_LABELS_PER_AGENT, MAX_SERVICE_ADDRESS_CHARS } from '../domain/agents.ts';
import {
  CONTROLS,
  ENTRY_ID_BYTES,
  ENTRY_STATUSES,
  MAX_REQUEST_NOTE_CHARS,
  MAX_TEXT_BYTES,
  PAIR_STATES,
  STREAM_ID_BYTES,
} from '../domain/chat.ts';
import {
  GROUP_STATES,
  HASH_BYTES,
  JOIN_SECRET_BYTES,
  MAX_GROUPS_PER_AGENT,
  MAX_HINTS,
  MAX_INVITATIONS,
  MAX_MEMBERS,
  MAX_PAST_GROUPS,
  MAX_TITLE_CHARS,
} from '../domain/groups.ts';
import {
  MAX_KEPT_NOTE_KEYS,
  MAX_MAILBOX_NOTES,
  MAX_NOTE_TYPE,
  MAX_QUEUED_NOTES,
  MESSAGE_ID_BYTES,
  X25519_PRIVATE_KEY_BYTES,
} from '../domain/notes.ts';
import { MAX_FILE_NAME_BYTES, OBJECT_ID_BYTES } from '../domain/objects.ts';
import { MAX_ORIGINS } from '../domain/services.ts';
import { MAX_UNIX_MS } from '../domain/time.ts';
import { MAX_IDLE_TIMEOUT_S, MAX_PORT, MAX_TUNNELS } from '../domain/tunnels.ts';
import {
  MAX_SERVICE_NAME_CHARS,
  MAX_TTL_S,
  RECORD,
  RECORD_DIGEST_BYTES,
  REMOVAL_TOKEN_BYTES,
} from '../records/types.ts';

export const DOCUMENT_VERSION = 1;
/**
 * Largest document, bytes. An agent at all its limits has about 110 MiB: notes 33 (a full mailbox of 24 in base64, and
 * notes returned but not acknowledged), note IDs 10, queued chat entries 16, chat logs 16, contacts 10, groups 22.
 */
export const MAX_AGENT_DOCUMENT_BYTES: number = 128 * 1024 * 1024;
/** Bytes of chat logs in the document, without queued entries. */
export const MAX_MOVED_CHAT_BYTES: number = 16 * 1024 * 1024;
/** Entries of one chat log in the document, newest first, without queued entries. */
export const MAX_MOVED_CHAT_ENTRIES = 2000;
/** Bytes of group entries in the document. Larger groups are fetched from their members. */
export const MAX_MOVED_GROUP_BYTES: number = 16 * 1024 * 1024;
/** Note IDs in the document, newest first. */
export const MAX_MOVED_SEEN = 100_000;

/** Maximum number of items of each list. They match the limits of an agent. */
const MAX_KEPT_RECORDS = 96;
/** A full mailbox, and as many notes that were returned but not acknowledged. */
const MAX_MOVED_NOTES: number = 2 * MAX_MAILBOX_NOTES;
const MAX_CONVERSATIONS = 20_000;
const MAX_ENTRIES = 250_000;
/** Including groups that the agent left. */
const MAX_MOVED_GROUPS: number = MAX_GROUPS_PER_AGENT + MAX_PAST_GROUPS;
/** Longest base64 of a body, a payload or an entry. */
const MAX_BLOB_CHARS = 64 * 1024;
const MAX_KEY_CHARS = 256;
const MAX_PROOF_CHARS = 8192;
const MAX_VERSION_CHARS = 64;

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
const Time = Type.Integer({ minimum: 0, maximum: MAX_UNIX_MS });
const Text = Type.String({ maxLength: MAX_TEXT_BYTES });
const Label = Type.String({ maxLength: MAX_LABEL_CHARS });
const AidText = Type.String({ format: 'aid', maxLength: MAX_AID_CHARS });
const Blob = Type.String({ contentEncoding: 'base64', maxLength: MAX_BLOB_CHARS });

export const RecordsPart = part({
  seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Last sequence number used.' }),
  kept: Type.Array(
    part({
      type: Type.Integer({ minimum: RECORD.endpoints, maximum: RECORD.service }),
      name: Type.String({ maxLength: MAX_SERVICE_NAME_CHARS, description: 'Service name, for a service record.' }),
      payload_base64: Blob,
      ttl: Type.Integer({ minimum: 1, maximum: MAX_TTL_S, description: 'Seconds.' }),
    }),
    { maxItems: MAX_KEPT_RECORDS },
  ),
});

export const AccessPart = part({
  default: Type.Enum(ACCESS_POLICIES),
  salt_hex: hex(SECRET_SALT_BYTES),
  allow: Type.Array(
    part({
      aid: Type.Optional(AidText),
      secret_hash_hex: Type.Optional(hex(SECRET_HASH_BYTES)),
      label: Type.Optional(Label),
      created_at: Time,
      expires_at: Type.Optional(Time),
      tools: Type.Optional(
        Type.Array(Type.String({ maxLength: MAX_TOOL_NAME_CHARS, pattern: TOOL_NAME_PATTERN }), {
          minItems: 1,
          maxItems: MAX_ENTRY_TOOLS,
          description: 'The MCP tools that the AID is limited to.',
        }),
      ),
    }),
    { maxItems: MAX_LIST_ENTRIES, description: 'Each with aid or secret_hash_hex.' },
  ),
  deny: Type.Array(part({ aid: AidText, created_at: Time, expires_at: Type.Optional(Time) }), {
    maxItems: MAX_LIST_ENTRIES,
  }),
});

export const TunnelsPart = Type.Array(
  part({
    remote_aid: AidText,
    local_port: Type.Integer({ minimum: 1, maximum: MAX_PORT }),
    idle_timeout_sec: Type.Integer({ minimum: -1, maximum: MAX_IDLE_TIMEOUT_S }),
    disable_relay: Type.Boolean(),
    access_token: Type.Optional(Type.String({ maxLength: MAX_ACCESS_TOKEN_CHARS })),
  }),
  { maxItems: MAX_TUNNELS },
);

export const OriginsPart = Type.Array(
  part({
    remote_aid: AidText,
    local_port: Type.Integer({ minimum: 1, maximum: MAX_PORT }),
    access_token: Type.Optional(Type.String({ maxLength: MAX_ACCESS_TOKEN_CHARS })),
  }),
  { maxItems: MAX_ORIGINS, description: 'Local addresses. Version 1 has none.' },
);

export const NotesPart = part({
  keys: Type.Array(
    part({
      private_key_hex: hex(X25519_PRIVATE_KEY_BYTES),
      created_at: Type.Integer({ minimum: 0, maximum: MAX_UNIX_MS }),
    }),
    {
      maxItems: MAX_KEPT_NOTE_KEYS,
      description: 'Keys that open notes; created_at in Unix seconds.',
    },
  ),
  waiting: Type.Array(
    part({
      message_id: hex(MESSAGE_ID_BYTES),
      sender: AidText,
      msg_type: Type.Integer({ minimum: 0, maximum: MAX_NOTE_TYPE }),
      body_base64: Blob,
      sent_at: Time,
      received_at: Time,
      digest_hex: hex(RECORD_DIGEST_BYTES),
      token_hex: hex(REMOVAL_TOKEN_BYTES),
    }),
    { maxItems: MAX_MOVED_NOTES },
  ),
  queued: Type.Array(
    part({
      recipient: AidText,
      msg_type: Type.Integer({ minimum: 0, maximum: MAX_NOTE_TYPE }),
      body_base64: Blob,
      nonce_hex: hex(REMOVAL_TOKEN_BYTES),
      sent_at: Time,
    }),
    { maxItems: MAX_QUEUED_NOTES, description: 'Notes in the outbox.' },
  ),
  seen: Type.Array(part({ id: hex(MESSAGE_ID_BYTES), until: Time }), {
    maxItems: MAX_MOVED_SEEN,
    description: 'IDs of received notes, to drop duplicates.',
  }),
});

const Stream = orNull(hex(STREAM_ID_BYTES));

export const ChatPart = Type.Array(
  part({
    peer: AidText,
    state: Type.Enum(PAIR_STATES),
    since: Time,
    // A character outside the BMP has two code units.
    note: Type.String({ maxLength: 2 * MAX_REQUEST_NOTE_CHARS }),
    expires_at: orNull(Time),
    out_stream: Stream,
    acked: Count,
    acked_id: orNull(hex(ENTRY_ID_BYTES)),
    in_stream: Stream,
    received_id: orNull(hex(ENTRY_ID_BYTES)),
    control: orNull(Type.Enum(CONTROLS)),
    control_until: orNull(Time),
    gone_out: Stream,
    gone_in: Stream,
    last_seq: Count,
    last_at: orNull(Time),
    read_cursor: Count,
    entries: Type.Array(
      part({
        seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
        id: hex(ENTRY_ID_BYTES),
        dir: Type.Enum(['in', 'out']),
        status: Type.Enum(ENTRY_STATUSES),
        at: Time,
        text: Type.Optional(Text),
        file: Type.Optional(
          part({ object_id: hex(OBJECT_ID_BYTES), name: Type.String({ maxLength: MAX_FILE_NAME_BYTES }), size: Count }),
        ),
      }),
      { maxItems: MAX_ENTRIES },
    ),
  }),
  { maxItems: MAX_CONVERSATIONS },
);

const JoinData = {
  group_id: hex(HASH_BYTES),
  creator: AidText,
  title: Type.String({ maxLength: MAX_TITLE_CHARS }),
  secret_hex: orNull(hex(JOIN_SECRET_BYTES)),
};

export const GroupsPart = part({
  joined: Type.Array(
    part({
      ...JoinData,
      state: Type.Enum(GROUP_STATES),
      hints: Type.Array(AidText, { maxItems: MAX_HINTS }),
      read_seq: Count,
      last_at: Time,
      invited: Type.Array(part({ target: AidText, until: Time }), { maxItems: MAX_MEMBERS }),
      entries_base64: Type.Array(Blob, {
        maxItems: MAX_ENTRIES,
        description: 'Signed entries in local order. If empty, members send them.',
      }),
    }),
    { maxItems: MAX_MOVED_GROUPS },
  ),
  invitations: Type.Array(part({ ...JoinData, inviter: AidText, at: Time }), { maxItems: MAX_INVITATIONS }),
});

export const AgentDocument = part({
  svcd_agent: Type.Literal(DOCUMENT_VERSION, { description: 'Format version.' }),
  svcd_version: Type.String({ maxLength: MAX_VERSION_CHARS, description: 'Version of the daemon that wrote it.' }),
  exported_at: Time,
  aid: AidText,
  operational_private_key_hex: Type.String({ maxLength: MAX_KEY_CHARS }),
  delegation_proof_hex: Type.String({ maxLength: MAX_PROOF_CHARS }),
  service_tcp: Type.String({ maxLength: MAX_SERVICE_ADDRESS_CHARS }),
  evidence: Type.Boolean({ description: 'Its calls carry evidence.' }),
  card: Type.Optional(Type.String({ maxLength: MAX_CARD_BYTES, description: 'Its signed card, canonical JSON.' })),
  label: Type.Optional(Label),
  other_labels: Type.Optional(
    Type.Array(Label, { maxItems: MAX_LABELS_PER_AGENT, description: 'Its further labels.' }),
  ),
  records: RecordsPart,
  access: Type.Optional(AccessPart),
  tunnels: TunnelsPart,
  origins: OriginsPart,
  notes: NotesPart,
  chat: ChatPart,
  groups: GroupsPart,
  left_out: part({
    chat_entries: Count,
    group_copies: Type.Array(hex(HASH_BYTES), { maxItems: MAX_MOVED_GROUPS }),
    objects: Count,
  }),
});

export type AgentDocument = Static<typeof AgentDocument>;
export type RecordsPart = Static<typeof RecordsPart>;
export type AccessPart = Static<typeof AccessPart>;
export type TunnelsPart = Static<typeof TunnelsPart>;
export type OriginsPart = Static<typeof OriginsPart>;
export type NotesPart = Static<typeof NotesPart>;
export type ChatPart = Static<typeof ChatPart>;
export type GroupsPart = Static<typeof GroupsPart>;
