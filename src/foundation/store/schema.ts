/** The schema of the database of a node. */

/** Values of the node itself, as JSON. */
const META = `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

/**
 * The local agents. Their keys are files of the key store, named by `key_name`. `issued_at` and `expires_at` repeat
 * the delegation (Unix seconds). All other times are Unix milliseconds.
 */
const AGENTS = `
  CREATE TABLE agents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    aid TEXT NOT NULL UNIQUE,
    key_name TEXT NOT NULL UNIQUE,
    operational_key BLOB NOT NULL,
    delegation BLOB NOT NULL,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    service_tcp TEXT NOT NULL DEFAULT '',
    registered_at INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    -- Not published until the owner requests it.
    is_held INTEGER NOT NULL DEFAULT 0 CHECK (is_held IN (0, 1)),
    -- Calls carry evidence.
    gives_evidence INTEGER NOT NULL DEFAULT 0 CHECK (gives_evidence IN (0, 1)),
    -- Services that temporary ones replaced, one per line, the last one first.
    service_before TEXT
  ) STRICT;
  CREATE INDEX agents_bound ON agents (service_tcp) WHERE service_tcp <> '';
`;

/**
 * Key files to delete. A key is listed before its file is written and removed from the list when an agent has it. The
 * key of a removed or changed agent is listed in the same transaction. Files with other names are never deleted.
 */
const RETIRED_KEYS = `
  CREATE TABLE retired_keys (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TRIGGER agents_key_taken AFTER INSERT ON agents BEGIN
    DELETE FROM retired_keys WHERE name = new.key_name;
  END;
  CREATE TRIGGER agents_key_replaced AFTER UPDATE OF key_name ON agents WHEN old.key_name <> new.key_name BEGIN
    INSERT OR IGNORE INTO retired_keys (name) VALUES (old.key_name);
    DELETE FROM retired_keys WHERE name = new.key_name;
  END;
  CREATE TRIGGER agents_key_left AFTER DELETE ON agents BEGIN
    INSERT OR IGNORE INTO retired_keys (name) VALUES (old.key_name);
  END;
`;

/** Access lists. A subject is an agent, or the node for remote administration. */
const ACCESS = `
  CREATE TABLE access_subjects (
    subject TEXT PRIMARY KEY,
    policy  TEXT NOT NULL CHECK (policy IN ('public', 'deny')),
    -- One salt for all secrets of a subject: a guess costs one derivation, however many secrets there are.
    salt    BLOB NOT NULL,
    -- 1: callers without an entry ask the owner. The policy is "deny" then.
    ask_owner INTEGER NOT NULL DEFAULT 0,
    -- The default that returns when the temporary service of the agent ends. NULL: the default is permanent.
    policy_before TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE access_entries (
    id          TEXT PRIMARY KEY,
    subject     TEXT NOT NULL REFERENCES access_subjects (subject) ON DELETE CASCADE,
    list        TEXT NOT NULL CHECK (list IN ('allow', 'deny')),
    aid         TEXT,
    secret_hash BLOB,
    label       TEXT,
    -- Milliseconds since the Unix epoch.
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    -- JSON: the MCP tools that an entry is limited to. NULL: no limit.
    tools       TEXT,
    CHECK ((aid IS NULL) <> (secret_hash IS NULL)),
    CHECK (list = 'allow' OR aid IS NOT NULL)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX access_entries_subject ON access_entries (subject, list, created_at);
  CREATE UNIQUE INDEX access_entries_aid ON access_entries (subject, list, aid) WHERE aid IS NOT NULL;
  CREATE UNIQUE INDEX access_entries_secret ON access_entries (subject, secret_hash) WHERE secret_hash IS NOT NULL;
`;

/** The access list of an agent is deleted with it. */
const ACCESS_OF_AGENTS = `
  CREATE TRIGGER agents_access AFTER DELETE ON agents BEGIN
    DELETE FROM access_subjects WHERE subject = OLD.aid;
  END;
`;

/** Requests and refusals of remote administration. */
const AUDIT = `
  CREATE TABLE admin_audit (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Each kind has its own limit, so that refusals and reads do not evict writes.
    kind     TEXT NOT NULL CHECK (kind IN ('read', 'write', 'refused')),
    -- Milliseconds since the Unix epoch.
    at       INTEGER NOT NULL,
    caller   TEXT NOT NULL,
    node_key TEXT,
    address  TEXT,
    method   TEXT,
    path     TEXT,
    status   INTEGER,
    reason   TEXT,
    -- The refused caller is known to the owner, so strangers do not evict the row.
    named    INTEGER NOT NULL DEFAULT 0,
    CHECK ((kind = 'refused') = (reason IS NOT NULL))
  ) STRICT;

  CREATE INDEX admin_audit_kind ON admin_audit (kind, id);
  CREATE INDEX admin_audit_of_strangers ON admin_audit (id) WHERE kind = 'refused' AND named = 0;
`;

/**
 * Published records. A publisher is an agent or the node. `seq` is stored before a record with it is sent, so it never
 * decreases. Times are Unix milliseconds.
 */
const PUBLICATIONS = `
  CREATE TABLE publishers (
    aid TEXT PRIMARY KEY,
    seq INTEGER NOT NULL DEFAULT 0,
    claim INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'held')),
    due_at INTEGER,
    failures INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX publishers_due ON publishers (claim, due_at) WHERE due_at IS NOT NULL;

  CREATE TABLE publications (
    aid TEXT NOT NULL REFERENCES publishers (aid) ON DELETE CASCADE,
    type INTEGER NOT NULL,
    name TEXT NOT NULL,
    payload BLOB NOT NULL,
    ttl INTEGER NOT NULL,
    seq INTEGER NOT NULL DEFAULT 0,
    published_at INTEGER,
    replicas INTEGER NOT NULL DEFAULT 0,
    dirty INTEGER NOT NULL DEFAULT 1,
    settled INTEGER NOT NULL DEFAULT 0,
    -- Digest of the addresses in the published endpoint record.
    digest TEXT,
    PRIMARY KEY (aid, type, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX publications_unsettled ON publications (aid) WHERE settled = 0;

  CREATE TRIGGER agents_unpublish AFTER DELETE ON agents BEGIN
    DELETE FROM publishers WHERE aid = OLD.aid;
  END;
`;

/** The newest delegation seen of each agent, so that an older one stays rejected after a restart. */
const DELEGATIONS = `
  CREATE TABLE seen_delegations (
    aid TEXT PRIMARY KEY,
    -- Unix seconds.
    issued_at INTEGER NOT NULL,
    -- Milliseconds since the Unix epoch.
    seen_at INTEGER NOT NULL,
    -- Source and network of the stranger that caused the row; empty if this node chose the agent.
    source TEXT NOT NULL DEFAULT 'unknown',
    network TEXT NOT NULL DEFAULT 'unknown',
    -- Two different delegations were seen.
    rotated INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
`;

/** Tunnels that are reopened after a restart. The sealed access token is stored because no user is present then. */
const TUNNELS = `
  CREATE TABLE tunnels (
    id TEXT PRIMARY KEY,
    local_aid TEXT NOT NULL,
    remote_aid TEXT NOT NULL,
    sealed_token BLOB,
    local_port INTEGER NOT NULL UNIQUE,
    idle_timeout_s INTEGER NOT NULL,
    disable_relay INTEGER NOT NULL
  ) STRICT;
`;

/** Local addresses of remote agents. The sealed access token is stored because no user is present after a restart. */
const ORIGINS = `
  CREATE TABLE origins (
    id TEXT PRIMARY KEY,
    local_aid TEXT NOT NULL,
    remote_aid TEXT NOT NULL,
    sealed_token BLOB,
    port INTEGER NOT NULL UNIQUE,
    opened_at INTEGER NOT NULL,
    UNIQUE (local_aid, remote_aid)
  ) STRICT;
`;

/**
 * Mailboxes of local agents. A delivered note is marked with `taken_at` until the client has the response,
 * a note that a session of an assistant has read with a negative one.
 * `notes_seen` outlives the notes, so that later copies are ignored. Times are Unix milliseconds.
 */
const NOTES = `
  CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    aid TEXT NOT NULL,
    message_id BLOB NOT NULL,
    sender TEXT NOT NULL,
    msg_type INTEGER NOT NULL,
    body BLOB NOT NULL,
    sent_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    -- Digest and token that remove the copies at storage nodes.
    digest BLOB NOT NULL,
    token BLOB NOT NULL,
    size INTEGER NOT NULL,
    taken_at INTEGER,
    -- Checksum of the content.
    sum INTEGER,
    UNIQUE (aid, message_id)
  ) STRICT;
  CREATE INDEX notes_waiting ON notes (aid, id, sender, size) WHERE taken_at IS NULL;
  CREATE INDEX notes_taken ON notes (aid, taken_at) WHERE taken_at IS NOT NULL;

  CREATE TABLE notes_seen (
    aid TEXT NOT NULL,
    message_id BLOB NOT NULL,
    until INTEGER NOT NULL,
    -- The sender is known to the owner; IDs of strangers are deleted first.
    known INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (aid, message_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX notes_seen_until ON notes_seen (until);

  -- Attempts without an acknowledgement. The next attempt reuses the ID.
  CREATE TABLE notes_unsent (
    aid TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    nonce BLOB NOT NULL,
    sent_at INTEGER NOT NULL,
    PRIMARY KEY (aid, fingerprint)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX notes_unsent_at ON notes_unsent (sent_at);

  CREATE TRIGGER agents_notes AFTER DELETE ON agents BEGIN
    DELETE FROM notes WHERE aid = OLD.aid;
    DELETE FROM notes_seen WHERE aid = OLD.aid;
    DELETE FROM notes_unsent WHERE aid = OLD.aid;
  END;
`;

/**
 * Notes that no other node stores yet. `until`: the note expires. `due_at`: the next attempt. Times are Unix
 * milliseconds.
 */
const NOTE_OUTBOX = `
  CREATE TABLE note_outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    aid TEXT NOT NULL,
    message_id BLOB NOT NULL,
    recipient TEXT NOT NULL,
    msg_type INTEGER NOT NULL,
    body BLOB NOT NULL,
    nonce BLOB NOT NULL,
    sent_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    UNIQUE (aid, message_id)
  ) STRICT;
  CREATE INDEX note_outbox_due ON note_outbox (due_at);

  CREATE TRIGGER agents_note_outbox AFTER DELETE ON agents BEGIN
    DELETE FROM note_outbox WHERE aid = OLD.aid;
  END;
`;

/**
 * Copies of notes that the recipient has and the record network does not have yet. Columns as in the outbox; the
 * sender is not stored.
 */
const NOTE_COPIES = `
  CREATE TABLE note_copies (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mailbox BLOB NOT NULL,
    record BLOB NOT NULL,
    until INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX note_copies_due ON note_copies (due_at);
  CREATE INDEX note_copies_mailbox ON note_copies (mailbox, due_at);
`;

/**
 * Conversations. A pair is a local agent and a peer. `out_stream` and `in_stream` identify the two directions of the
 * relationship, `acked` and `received` count what arrived. `control` is the message that the peer must still receive.
 * Entries of status 1 are the queue, ordered by `seq`. Times are Unix milliseconds.
 */
const CHAT = `
  CREATE TABLE chat_pairs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    aid TEXT NOT NULL,
    peer TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('none', 'friends', 'out_pending', 'in_pending', 'blocked')),
    since INTEGER NOT NULL,
    note TEXT NOT NULL DEFAULT '',
    expires_at INTEGER,
    origin TEXT,
    out_stream BLOB,
    acked INTEGER NOT NULL DEFAULT 0,
    acked_id BLOB,
    in_stream BLOB,
    received_id BLOB,
    control TEXT CHECK (control IN ('request', 'accept', 'gone')),
    control_until INTEGER,
    gone_out BLOB,
    gone_in BLOB,
    queued INTEGER NOT NULL DEFAULT 0,
    queued_bytes INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER,
    read_cursor INTEGER NOT NULL DEFAULT 0,
    unread INTEGER NOT NULL DEFAULT 0,
    unread_bytes INTEGER NOT NULL DEFAULT 0,
    UNIQUE (aid, peer)
  ) STRICT;
  CREATE INDEX chat_pairs_state ON chat_pairs (aid, state, since);
  CREATE INDEX chat_pairs_invites ON chat_pairs (aid, origin) WHERE state = 'in_pending';
  CREATE INDEX chat_pairs_unread ON chat_pairs (aid, unread) WHERE unread > 0;
  CREATE INDEX chat_pairs_work ON chat_pairs (id) WHERE control IS NOT NULL OR queued > 0;
  CREATE INDEX chat_pairs_expiry ON chat_pairs (expires_at) WHERE expires_at IS NOT NULL;
  CREATE INDEX chat_pairs_control ON chat_pairs (control_until) WHERE control_until IS NOT NULL;
  CREATE INDEX chat_pairs_recent ON chat_pairs (coalesce(last_at, since)) WHERE state = 'friends';

  CREATE TABLE chat_entries (
    pair INTEGER NOT NULL REFERENCES chat_pairs (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    incoming INTEGER NOT NULL,
    -- 0 received, 1 queued, 2 sent, 3 dropped
    status INTEGER NOT NULL,
    at INTEGER NOT NULL,
    text TEXT,
    object_id TEXT,
    name TEXT,
    size INTEGER,
    bytes INTEGER NOT NULL,
    -- Checksum of the content.
    sum INTEGER,
    UNIQUE (pair, seq),
    UNIQUE (pair, id)
  ) STRICT;
  CREATE INDEX chat_entries_queue ON chat_entries (pair, seq) WHERE status = 1;
  CREATE INDEX chat_entries_incoming ON chat_entries (pair, seq, bytes) WHERE incoming = 1;

  CREATE TRIGGER agents_chat AFTER DELETE ON agents BEGIN
    DELETE FROM chat_pairs WHERE aid = OLD.aid;
  END;
`;

/**
 * Groups: one log for all local members of a group. A joining agent has an empty log of its own until it is admitted. IDs
 * have 32 bytes. Times are Unix milliseconds.
 */
const GROUPS = `
  CREATE TABLE group_logs (
    -- AUTOINCREMENT: peers store how far they read a log, so its number is never reused.
    lid INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id BLOB NOT NULL,
    creator TEXT NOT NULL,
    title TEXT NOT NULL,
    epoch BLOB NOT NULL,
    max_seq INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX group_logs_group ON group_logs (group_id) WHERE max_seq > 0;

  CREATE TABLE groups (
    rid INTEGER PRIMARY KEY AUTOINCREMENT,
    aid TEXT NOT NULL,
    group_id BLOB NOT NULL,
    lid INTEGER NOT NULL REFERENCES group_logs,
    -- joining, member, left, removed
    state TEXT NOT NULL,
    secret BLOB,
    -- Members to contact while the log is empty: AIDs, separated by spaces.
    hints TEXT NOT NULL,
    -- The last entry that a former member may read; null without a limit.
    up_to INTEGER,
    read_seq INTEGER NOT NULL DEFAULT 0,
    unread INTEGER NOT NULL DEFAULT 0,
    mentions INTEGER NOT NULL DEFAULT 0,
    UNIQUE (aid, group_id)
  ) STRICT;
  CREATE INDEX groups_log ON groups (lid, aid);
  CREATE TRIGGER groups_deleted AFTER DELETE ON groups BEGIN
    DELETE FROM group_logs WHERE lid = OLD.lid AND NOT EXISTS (SELECT 1 FROM groups WHERE lid = OLD.lid);
  END;
  CREATE TRIGGER groups_attached AFTER UPDATE OF lid ON groups BEGIN
    DELETE FROM group_logs WHERE lid = OLD.lid AND NOT EXISTS (SELECT 1 FROM groups WHERE lid = OLD.lid);
  END;

  CREATE TABLE group_entries (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    -- Order of arrival: 1, 2, 3 … Parents precede their children.
    seq INTEGER NOT NULL,
    entry_id BLOB NOT NULL,
    parents BLOB NOT NULL,
    depth INTEGER NOT NULL,
    author TEXT NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    reply_to BLOB,
    -- Position among the control entries, which determine the members.
    control_no INTEGER,
    -- Positions of the newest control ancestors, four bytes each.
    frontier BLOB NOT NULL,
    -- An entry to read, for all members except its author.
    counts INTEGER NOT NULL,
    -- Concurrent with the removal of its author: stored but hidden.
    void INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    retracted INTEGER NOT NULL DEFAULT 0,
    -- Checksum of the content; detects bytes that the disk changed.
    sum INTEGER,
    PRIMARY KEY (lid, seq)
  ) STRICT;
  CREATE UNIQUE INDEX group_entries_id ON group_entries (lid, entry_id);
  CREATE INDEX group_entries_author ON group_entries (lid, author, seq);
  CREATE INDEX group_entries_kind ON group_entries (lid, kind, seq);
  CREATE INDEX group_entries_reply ON group_entries (lid, reply_to, seq) WHERE reply_to IS NOT NULL;
  CREATE INDEX group_entries_control ON group_entries (lid, control_no) WHERE control_no IS NOT NULL;
  CREATE INDEX group_entries_unread ON group_entries (lid, seq, author) WHERE counts = 1 AND void = 0 AND retracted = 0;
  CREATE INDEX group_entries_title ON group_entries (lid, depth, entry_id) WHERE kind = 'title' AND void = 0;

  CREATE TABLE group_heads (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    entry_id BLOB NOT NULL,
    PRIMARY KEY (lid, entry_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE group_mentions (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    aid TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (lid, aid, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE group_retracts (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    target BLOB NOT NULL,
    seq INTEGER NOT NULL,
    -- Its author was an admin when it was written.
    by_admin INTEGER NOT NULL,
    PRIMARY KEY (lid, target, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX group_retracts_seq ON group_retracts (lid, seq);

  -- Entries concurrent with the removal of their author.
  CREATE TABLE group_conflicts (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    removal_no INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (lid, removal_no, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX group_conflicts_seq ON group_conflicts (lid, seq);

  -- Read position in the log of another member.
  CREATE TABLE group_peers (
    lid INTEGER NOT NULL REFERENCES group_logs ON DELETE CASCADE,
    peer TEXT NOT NULL,
    epoch BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (lid, peer)
  ) STRICT, WITHOUT ROWID;

  -- Sent invitations without an answer.
  CREATE TABLE group_invites_out (
    rid INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
    target TEXT NOT NULL,
    next_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    PRIMARY KEY (rid, target)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX group_invites_out_next ON group_invites_out (next_at);

  -- Received invitations.
  CREATE TABLE group_invites_in (
    aid TEXT NOT NULL,
    group_id BLOB NOT NULL,
    inviter TEXT NOT NULL,
    creator TEXT NOT NULL,
    title TEXT NOT NULL,
    secret BLOB,
    at INTEGER NOT NULL,
    -- The inviter is known to the owner.
    known INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (aid, group_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX group_invites_in_at ON group_invites_in (aid, at);
`;

/** The event log: one sequence for all local agents. */
const EVENTS = `
  CREATE TABLE events (
    -- AUTOINCREMENT: numbers are never reused, so a cursor of a deleted log is detected.
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    aid  TEXT NOT NULL,
    type TEXT NOT NULL,
    -- Milliseconds since the Unix epoch.
    at   INTEGER NOT NULL,
    -- JSON.
    data TEXT NOT NULL,
    -- Who caused it: a peer, a group, or all strangers together. Each has a share of the log.
    cause TEXT
  ) STRICT;

  CREATE INDEX events_aid ON events (aid, seq);
  CREATE INDEX events_by_cause ON events (aid, cause, seq) WHERE cause IS NOT NULL;

  CREATE TABLE event_streams (
    aid        TEXT PRIMARY KEY,
    -- Stored events of the agent.
    count      INTEGER NOT NULL,
    -- Newest deleted event; 0 for none.
    pruned_seq INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX event_streams_pruned ON event_streams (pruned_seq);
`;

/** Objects of local agents, and other agents that hold them. */
const OBJECTS = `
  CREATE TABLE objects (
    aid         TEXT NOT NULL,
    -- SHA-256 of the bytes, lower-case hex.
    object_id   TEXT NOT NULL,
    name        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    -- Path below files_root of a file added in place; null if the bytes are stored under their ID.
    path        TEXT,
    -- State of the file when it was hashed, and the time.
    fingerprint TEXT NOT NULL,
    hashed_at   INTEGER NOT NULL,
    PRIMARY KEY (aid, object_id)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX objects_id ON objects (object_id, aid);
  CREATE INDEX objects_path ON objects (aid, path) WHERE path IS NOT NULL;

  -- Hashes of the prefixes of an object.
  CREATE TABLE object_prefixes (
    object_id TEXT PRIMARY KEY,
    hashes BLOB NOT NULL
  ) STRICT;
  CREATE TRIGGER object_prefixes_left AFTER DELETE ON objects BEGIN
    DELETE FROM object_prefixes WHERE object_id = old.object_id
      AND NOT EXISTS (SELECT 1 FROM objects WHERE object_id = old.object_id);
  END;

  CREATE TABLE object_holders (
    object_id TEXT NOT NULL,
    holder    TEXT NOT NULL,
    seen_at   INTEGER NOT NULL,
    PRIMARY KEY (object_id, holder)
  ) STRICT, WITHOUT ROWID;

  CREATE INDEX object_holders_seen ON object_holders (seen_at);
`;

/** Object files to delete, as `RETIRED_KEYS` for key files. */
const RETIRED_OBJECTS = `
  CREATE TABLE retired_objects (object_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TRIGGER objects_stored AFTER INSERT ON objects WHEN new.path IS NULL BEGIN
    DELETE FROM retired_objects WHERE object_id = new.object_id;
  END;
  CREATE TRIGGER objects_changed AFTER UPDATE OF path ON objects WHEN old.path IS NOT new.path BEGIN
    DELETE FROM retired_objects WHERE object_id = new.object_id AND new.path IS NULL;
    INSERT OR IGNORE INTO retired_objects (object_id) SELECT old.object_id
      WHERE old.path IS NULL AND NOT EXISTS (SELECT 1 FROM objects WHERE object_id = old.object_id AND path IS NULL);
  END;
  CREATE TRIGGER objects_left AFTER DELETE ON objects WHEN old.path IS NULL BEGIN
    INSERT OR IGNORE INTO retired_objects (object_id) SELECT old.object_id
      WHERE NOT EXISTS (SELECT 1 FROM objects WHERE object_id = old.object_id AND path IS NULL);
  END;
`;

/**
 * Files offered by and to local agents. `tell_at`: the next attempt to tell the peer the result; null if the peer
 * knows it. Times are Unix milliseconds.
 */
const FILE_OFFERS = `
  CREATE TABLE file_offers (
    aid TEXT NOT NULL,
    id TEXT NOT NULL,
    peer TEXT NOT NULL,
    outgoing INTEGER NOT NULL,
    -- Empty until the file is hashed.
    object_id TEXT NOT NULL,
    size INTEGER NOT NULL,
    name TEXT NOT NULL,
    message TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'taken', 'declined', 'withdrawn', 'expired')),
    at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    settled_at INTEGER,
    -- The object exists only for offers and is deleted with the last open one.
    temporary INTEGER NOT NULL,
    tell_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- The client that made the offer has received the result.
    heard INTEGER NOT NULL DEFAULT 1,
    -- Why the offer ended, if its file could not be read.
    problem TEXT,
    PRIMARY KEY (aid, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX file_offers_open ON file_offers (aid, outgoing, peer, object_id) WHERE state = 'open';
  CREATE INDEX file_offers_expiry ON file_offers (expires_at) WHERE state = 'open';
  CREATE INDEX file_offers_temporary ON file_offers (aid, object_id) WHERE temporary = 1 AND state <> 'open';
  CREATE INDEX file_offers_tell ON file_offers (tell_at) WHERE tell_at IS NOT NULL;

  CREATE TRIGGER agents_file_offers AFTER DELETE ON agents BEGIN
    DELETE FROM file_offers WHERE aid = OLD.aid;
  END;
`;

/** Signed cards of local agents, and the newest card seen of other agents. */
const CARDS = `
  CREATE TABLE own_cards (
    aid TEXT PRIMARY KEY REFERENCES agents (aid) ON DELETE CASCADE,
    card TEXT NOT NULL,
    object_id TEXT NOT NULL,
    signed_at INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE seen_cards (
    aid TEXT PRIMARY KEY,
    card TEXT NOT NULL,
    object_id TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX seen_cards_by_time ON seen_cards (seen_at);
`;

/**
 * Webhooks of local programs, and webhook URLs that are reserved for others. URLs and tokens are secrets: they are stored
 * sealed, or as a hash. Times are Unix milliseconds.
 */
const PUSH = `
  CREATE TABLE webhooks (
    name TEXT PRIMARY KEY,
    origin_id TEXT NOT NULL REFERENCES origins (id) ON DELETE CASCADE,
    -- A key that follows from the URL.
    url TEXT NOT NULL,
    sealed_url BLOB NOT NULL,
    -- Task and configuration, if known; registered once for each.
    purpose TEXT,
    registered_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    taken INTEGER NOT NULL DEFAULT 0,
    UNIQUE (origin_id, url, purpose)
  ) STRICT;
  CREATE INDEX webhooks_by_use ON webhooks (origin_id, used_at);
  CREATE INDEX webhooks_by_time ON webhooks (used_at);

  -- A row without a body was delivered. It prevents a second delivery.
  CREATE TABLE webhook_posts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook TEXT NOT NULL REFERENCES webhooks (name) ON DELETE CASCADE,
    id TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    UNIQUE (webhook, id)
  ) STRICT;
  CREATE INDEX webhook_posts_waiting ON webhook_posts (webhook, seq, size) WHERE body IS NOT NULL;
  CREATE INDEX webhook_posts_by_time ON webhook_posts (at);

  CREATE TABLE push_boxes (
    id TEXT PRIMARY KEY,
    called TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
    caller TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    opened_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    -- Where the caller came from when it was opened: webhook URLs are counted by source.
    node TEXT NOT NULL,
    source TEXT,
    UNIQUE (called, caller)
  ) STRICT;
  CREATE INDEX push_boxes_by_time ON push_boxes (renewed_at);

  CREATE TABLE push_mail (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    box TEXT NOT NULL REFERENCES push_boxes (id) ON DELETE CASCADE,
    webhook TEXT NOT NULL,
    id TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX push_mail_waiting ON push_mail (box, webhook, seq, size);
  CREATE INDEX push_mail_by_time ON push_mail (at);
`;

/**
 * The MCP hub: agents whose tools a local agent uses, and the definitions of these tools. `local_aid` may be the node.
 * Times are Unix milliseconds.
 */
const HUB = `
  CREATE TABLE hub_sources (
    -- The search index in memory keeps the IDs. They are not reused.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    local_aid TEXT NOT NULL,
    aid TEXT NOT NULL,
    origin TEXT NOT NULL,
    state TEXT NOT NULL,
    -- Code of the last failure.
    error TEXT,
    -- The last complete list, and the next request for one.
    listed_at INTEGER,
    next_at INTEGER NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    -- Tools that exceeded a limit.
    skipped INTEGER NOT NULL DEFAULT 0,
    -- The first list with tools, which was accepted because the owner trusts the agent.
    trusted_at INTEGER,
    UNIQUE (local_aid, aid)
  ) STRICT;

  CREATE TABLE hub_tools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES hub_sources (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Canonical JSON and hash of the accepted definition.
    accepted TEXT,
    accepted_hash TEXT,
    accepted_at INTEGER,
    -- The definition that the agent offers now, if it is another one.
    offered TEXT,
    offered_hash TEXT,
    offered_at INTEGER,
    refused_hash TEXT,
    -- 0 if the last list did not contain it.
    present INTEGER NOT NULL,
    size INTEGER NOT NULL,
    UNIQUE (source, kind, name)
  ) STRICT;
  -- Queries that count need not read the definitions.
  CREATE INDEX hub_tools_size ON hub_tools (source, size);
  CREATE INDEX hub_tools_offered ON hub_tools (offered_hash, source, present, refused_hash)
    WHERE offered_hash IS NOT NULL;

  -- Decisions about definitions of tools, which outlive the tools.
  CREATE TABLE hub_decisions (
    local_aid TEXT NOT NULL,
    aid TEXT NOT NULL,
    -- SHA-256 of the definition.
    hash BLOB NOT NULL,
    accepted INTEGER NOT NULL,
    PRIMARY KEY (local_aid, aid, hash)
  ) STRICT, WITHOUT ROWID;

  CREATE TRIGGER agents_hub AFTER DELETE ON agents BEGIN
    DELETE FROM hub_sources WHERE local_aid = OLD.aid;
    DELETE FROM hub_decisions WHERE local_aid = OLD.aid;
  END;
`;

/**
 * Programs that are started when something arrives, and their deliveries, which are limited by source and network.
 * Times are Unix milliseconds.
 */
const HOOKS = `
  CREATE TABLE hooks (
    id TEXT PRIMARY KEY,
    aid TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    -- JSON: the program and its arguments.
    command TEXT NOT NULL,
    shell INTEGER NOT NULL,
    folder TEXT NOT NULL,
    -- AIDs, separated by blanks; empty for all.
    senders TEXT NOT NULL,
    only_known INTEGER NOT NULL,
    parallel INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    -- Items that found no room.
    skipped INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX hooks_by_agent ON hooks (aid, kind);

  CREATE TABLE hook_deliveries (
    -- AUTOINCREMENT: the folder of a run is named after it.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hook TEXT NOT NULL REFERENCES hooks (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    ref TEXT NOT NULL,
    peer TEXT NOT NULL,
    known INTEGER NOT NULL,
    -- Where the stranger that sent the item came from; empty for known senders.
    source TEXT NOT NULL,
    network TEXT NOT NULL,
    conversation TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'running', 'done', 'gone', 'dead')),
    at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    started_at INTEGER,
    ended_at INTEGER,
    exit_code INTEGER,
    problem TEXT NOT NULL DEFAULT '',
    output TEXT NOT NULL DEFAULT '',
    UNIQUE (hook, key)
  ) STRICT;
  CREATE INDEX hook_deliveries_open ON hook_deliveries (hook, conversation, id) WHERE state IN ('waiting', 'running');
  -- The due time of an ended delivery is 0.
  CREATE INDEX hook_deliveries_due ON hook_deliveries (due_at);
  CREATE INDEX hook_deliveries_by_state ON hook_deliveries (hook, state, known, id);
  CREATE INDEX hook_deliveries_waiting ON hook_deliveries (hook, known, network, source, peer) WHERE state = 'waiting';
`;

/**
 * Callers that wait for a decision of the owner, or that may make one exchange. A request belongs to its text: a caller
 * can have one that waits, and several that were allowed once. Times are Unix milliseconds.
 */
const ACCESS_REQUESTS = `
  CREATE TABLE access_requests (
    id TEXT PRIMARY KEY,
    called TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
    caller TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- Written by the caller.
    asked TEXT NOT NULL,
    tool TEXT,
    note TEXT NOT NULL,
    -- The name that the caller gives itself.
    name TEXT,
    -- Where the caller came from: requests are counted by source.
    node TEXT NOT NULL,
    source TEXT,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    -- 1: the owner allowed one exchange with this method and path, which has not begun.
    once INTEGER NOT NULL DEFAULT 0,
    -- JSON: the MCP tools of that exchange. NULL: no limit.
    tools TEXT,
    expires_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX access_requests_by_end ON access_requests (expires_at);
  CREATE INDEX access_requests_by_caller ON access_requests (called, caller, kind);
  CREATE UNIQUE INDEX access_requests_pending ON access_requests (called, caller, kind) WHERE once = 0;
`;

/** Services that start on demand. */
const ON_DEMAND = `
  CREATE TABLE on_demand (
    aid TEXT PRIMARY KEY REFERENCES agents (aid) ON DELETE CASCADE,
    -- JSON: the program and its arguments.
    command TEXT NOT NULL,
    shell INTEGER NOT NULL,
    folder TEXT NOT NULL,
    port INTEGER NOT NULL,
    idle_ms INTEGER NOT NULL
  ) STRICT;
`;

/** Callers that only the service of an agent that is bound now allows. */
const SERVICE_CALLERS = `
  CREATE TABLE service_callers (
    id TEXT PRIMARY KEY,
    subject TEXT NOT NULL REFERENCES access_subjects (subject) ON DELETE CASCADE,
    -- The temporary service. The row is deleted when it ends.
    service TEXT NOT NULL,
    aid TEXT NOT NULL,
    -- JSON: the MCP tools that the caller is limited to. NULL: no limit.
    tools TEXT,
    created_at INTEGER NOT NULL,
    UNIQUE (subject, service, aid)
  ) STRICT, WITHOUT ROWID;
`;

/** Requests whose response no client has received: the same request continues with their effect. */
const UNANSWERED_REQUESTS = `
  CREATE TABLE unanswered_requests (
    aid TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    -- Names what the request did.
    effect TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (aid, fingerprint)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX unanswered_requests_at ON unanswered_requests (at);
  CREATE TRIGGER agents_unanswered_requests AFTER DELETE ON agents BEGIN
    DELETE FROM unanswered_requests WHERE aid = OLD.aid;
  END;
`;

/** Public names that local agents hold at entries. */
const PUBLIC_NAMES = `
  CREATE TABLE public_names (
    name TEXT PRIMARY KEY,
    aid TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
    entry TEXT NOT NULL,
    held_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    error_code TEXT,
    error_text TEXT,
    due_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX public_names_due ON public_names (due_at);
`;

/** Public addresses, and the tokens of their clients. Times are Unix milliseconds. */
const EXPOSURES = `
  CREATE TABLE exposures (
    id TEXT PRIMARY KEY,
    aid TEXT NOT NULL REFERENCES agents (aid) ON DELETE CASCADE,
    host TEXT NOT NULL UNIQUE,
    mode TEXT NOT NULL,
    -- JSON: "METHOD /path" of requests that need no token.
    rules TEXT NOT NULL,
    -- 0: not served. A restored backup clears it.
    is_on INTEGER NOT NULL,
    opened_at INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE exposure_tokens (
    id TEXT PRIMARY KEY,
    exposure TEXT NOT NULL REFERENCES exposures (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    -- JSON: "METHOD /path" of the requests that it allows. Empty: all.
    rules TEXT NOT NULL,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    UNIQUE (exposure, label)
  ) STRICT;
  CREATE TABLE public_certificates (
    host TEXT PRIMARY KEY,
    -- PEM. NULL: none yet.
    chain TEXT,
    -- The PEM of its key.
    sealed_key BLOB,
    not_before INTEGER,
    not_after INTEGER,
    -- The next order. NULL: the host is not exposed.
    due_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error_code TEXT,
    error_text TEXT
  ) STRICT;
  CREATE INDEX public_certificates_due ON public_certificates (due_at);
`;

/** Names of an entry, and agents that may hold one. */
const ENTRY = `
  CREATE TABLE entry_allowed (
    aid TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE entry_invitations (
    token_hash BLOB PRIMARY KEY,
    created_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE entry_names (
    name TEXT PRIMARY KEY,
    aid TEXT NOT NULL,
    looks TEXT NOT NULL,
    held_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entry_names_looks ON entry_names (looks);
  CREATE INDEX entry_names_aid ON entry_names (aid);
`;

/** The SQL of each schema version, in order. Released versions never change; new ones are appended. */
export const MIGRATIONS: readonly string[] = [
  [
    META,
    AGENTS,
    RETIRED_KEYS,
    ACCESS,
    ACCESS_OF_AGENTS,
    ACCESS_REQUESTS,
    SERVICE_CALLERS,
    AUDIT,
    PUBLICATIONS,
    DELEGATIONS,
    TUNNELS,
    ORIGINS,
    NOTES,
    NOTE_OUTBOX,
    NOTE_COPIES,
    CHAT,
    GROUPS,
    EVENTS,
    OBJECTS,
    RETIRED_OBJECTS,
    FILE_OFFERS,
    CARDS,
    PUSH,
    HUB,
    HOOKS,
    ON_DEMAND,
    UNANSWERED_REQUESTS,
    PUBLIC_NAMES,
    EXPOSURES,
    ENTRY,
  ].join(''),
];
