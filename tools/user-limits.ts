/** The limits that users can reach, for docs/limits.md. All others are in docs/limits.json only. */

/** A constant of the sources and its meaning. `{NAME}` in a meaning is the value of another constant of that file. */
export type UserLimit = readonly [name: string, file: string, meaning: string];

/** Limits by the task of the user. */
export const USER_LIMITS: Readonly<Record<string, readonly UserLimit[]>> = {
  'Identify and publish agents': [
    ['MAX_SERVICE_NAME_CHARS', 'foundation/records/types.ts', 'characters of a service name'],
    ['MAX_SERVICES', 'foundation/domain/directory.ts', 'services that one agent offers'],
    ['MAX_NAME_BYTES', 'foundation/records/types.ts', 'display name of a service or profile'],
    ['MAX_BRIEF_BYTES', 'foundation/records/types.ts', 'brief description'],
    ['MAX_SKILLS', 'foundation/records/types.ts', 'skills of a profile'],
    ['MAX_CARD_BYTES', 'foundation/cards/card.ts', 'A2A or MCP card'],
    ['MAX_CUSTOM_PAYLOAD_BYTES', 'foundation/records/types.ts', 'payload of a custom record'],
    ['RECORD_TTL_S', 'foundation/domain/directory.ts', 'default lifetime of a record'],
    ['MAX_TTL_S', 'foundation/records/types.ts', 'longest lifetime of a record'],
    ['MAX_PROVIDERS', 'foundation/domain/directory.ts', 'agents that a search for one service name returns'],
  ],
  'Call agents': [
    ['CONNECT_TIMEOUT_MS', 'capabilities/calls/upstream.ts', 'wait for the bound service to accept a connection'],
    [
      'MAX_CALLS_PER_TARGET',
      'capabilities/calls/http-caller.ts',
      'concurrent calls from one agent to another; more are queued',
    ],
    [
      'MAX_EVENT_STREAMS_PER_TARGET',
      'capabilities/calls/http-caller.ts',
      'concurrent event streams from one agent to another',
    ],
    ['MAX_HTTP_HEADER_BYTES', 'capabilities/calls/headers.ts', 'headers of a request or response'],
    [
      'MAX_FETCHED_BYTES',
      'foundation/domain/services.ts',
      'body that `POST /fetch` and `svc_fetch` return; the rest is cut off',
    ],
    ['MAX_HOPS', 'capabilities/calls/hops.ts', 'agents that one call may pass'],
  ],
  'Use tunnels and local addresses': [
    ['MAX_TUNNELS', 'foundation/domain/tunnels.ts', 'open tunnels of a daemon'],
    ['DEFAULT_IDLE_TIMEOUT_S', 'foundation/domain/tunnels.ts', 'a tunnel without connections closes, by default'],
    ['RESUME_MS', 'capabilities/tunnels/connection.ts', 'a connection that lost its path waits for a new path'],
    ['MAX_ORIGINS', 'foundation/domain/services.ts', 'local addresses of a daemon'],
  ],
  'Control access': [
    ['MAX_LIST_ENTRIES', 'foundation/domain/access.ts', 'entries of one access list'],
    ['MAX_SECRETS', 'capabilities/access/access-lists.ts', 'entries with a secret in one access list'],
    ['MIN_SECRET_CHARS', 'foundation/domain/access.ts', 'shortest secret, in characters'],
    ['MAX_BOOK_ENTRIES', 'foundation/domain/agents.ts', 'labels in the address book'],
  ],
  'Send notes, chat, share groups': [
    ['MAX_NOTE_BODY_BYTES', 'foundation/domain/notes.ts', 'body of a note'],
    ['MAX_NOTE_TTL_S', 'foundation/records/types.ts', 'lifetime of a note'],
    ['MAX_QUEUED_NOTES', 'foundation/domain/notes.ts', 'notes in the outbox of an agent'],
    ['SENDS_PER_S', 'capabilities/notes/note-sender.ts', 'notes that an agent sends, with a burst of {SEND_BURST}'],
    ['MAX_TEXT_BYTES', 'foundation/domain/chat.ts', 'text of a chat entry'],
    ['REQUEST_LIFE_MS', 'foundation/domain/chat.ts', 'a chat request without an answer expires'],
    ['MAX_CONTACTS', 'capabilities/chat/chat.ts', 'friends of one agent'],
    ['MAX_QUEUED_BYTES', 'capabilities/chat/chat.ts', 'queued entries of one conversation'],
    ['MAX_MEMBERS', 'foundation/domain/groups.ts', 'members of a group'],
    ['MAX_GROUPS_PER_AGENT', 'foundation/domain/groups.ts', 'groups of one agent'],
    ['MAX_ENTRY_BODY_BYTES', 'foundation/domain/groups.ts', 'body of a group entry'],
    ['MAX_APPENDED', 'capabilities/groups/writer.ts', 'entries of a group'],
    ['INVITATION_LIFE_MS', 'foundation/domain/groups.ts', 'an invitation to a group expires'],
  ],
  'Share objects and files': [
    ['MAX_OBJECTS_PER_AGENT', 'capabilities/objects/quota.ts', 'objects of one agent'],
    [
      'MAX_OBJECT_BYTES_PER_AGENT',
      'capabilities/objects/quota.ts',
      'stored objects of one agent; files registered without a copy do not count',
    ],
    ['MAX_OFFERED_BYTES', 'foundation/domain/file-offers.ts', 'largest offered file'],
    ['FILE_OFFER_LIFE_MS', 'foundation/domain/file-offers.ts', 'a file offer expires'],
    ['MAX_OPEN_OFFERS', 'foundation/domain/file-offers.ts', 'open file offers to one agent'],
    ['MAX_DOWNLOADS', 'capabilities/objects/object-getter.ts', 'concurrent downloads'],
    ['MIN_FREE_BYTES', 'capabilities/objects/object-getter.ts', 'disk space that a download leaves free'],
  ],
  'Receive events and notifications': [
    ['EVENT_AGE_MS', 'capabilities/events/event-log.ts', 'events are deleted after this time'],
    ['MAX_SUBSCRIBERS', 'capabilities/events/event-streams.ts', 'open event streams of the API'],
    ['MAX_NOTIFICATION_BYTES', 'foundation/domain/push.ts', 'body of a notification to a webhook'],
    [
      'NOTIFICATIONS_PER_S',
      'capabilities/push/queue-limits.ts',
      'notifications from one agent to another, with a burst of {NOTIFICATIONS_BURST}',
    ],
    ['NOTIFICATION_LIFE_MS', 'foundation/domain/push.ts', 'an undelivered notification expires'],
    ['WEBHOOK_LIFE_MS', 'foundation/domain/push.ts', 'an unused webhook expires'],
  ],
  'Use the API': [
    ['JSON_BODY_LIMIT_BYTES', 'surfaces/rest/json-body.ts', 'JSON body of a request'],
    ['MAX_HEAD_BYTES', 'surfaces/rest/listener.ts', 'request line and headers'],
    ['BODY_TIMEOUT_MS', 'surfaces/rest/gate.ts', 'time for a JSON body to arrive'],
    ['UPLOAD_STALL_MS', 'operations/handlers/objects.ts', 'an upload without data ends'],
    ['MAX_LOCAL_CONNECTIONS', 'surfaces/rest/connections.ts', 'connections from this machine'],
    ['MAX_REMOTE_CONNECTIONS', 'surfaces/rest/connections.ts', 'connections from other machines'],
    ['MAX_REMOTE_CONNECTIONS_PER_ADDRESS', 'surfaces/rest/connections.ts', 'connections from one other address'],
    [
      'STRANGER_REQUESTS_PER_S',
      'surfaces/rest/gate.ts',
      'requests from one other address without a token, with a burst of {STRANGER_BURST}',
    ],
    ['PANEL_SESSION_IDLE_MS', 'capabilities/panel/panel-logins.ts', 'an unused panel session ends'],
    ['PANEL_SESSION_LIFE_MS', 'capabilities/panel/panel-logins.ts', 'a panel session ends'],
  ],
};
