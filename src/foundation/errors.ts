/**
 * The error catalogue: every code that a surface may show, with its HTTP status, its exit code of
 * `svc`, and its default message. Codes are part of the API: they are added, never renamed.
 */
import { MAX_SERVICE_NAME_CHARS } from './records/types.ts';

/** A command line that starts a second daemon beside one that runs, whatever ports are taken. */
export const SECOND_DAEMON = 'svcd --data-dir ./second --listen :0 --api-addr 127.0.0.1:0';

/** Exit codes of `svc` and `svcd`. */
export const EXIT = { failed: 1, usage: 2, unreachable: 3, refused: 4, notFound: 5 } as const;
type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface CatalogueEntry {
  readonly status: number;
  readonly exit: ExitCode;
  /** What happened and what to do, used where the thrower gives no message of its own. */
  readonly message: string;
  /** Statuses that some operations give with this code instead. */
  readonly otherStatuses: readonly number[];
}

function entry(status: number, exit: ExitCode, message: string, otherStatuses: readonly number[] = []): CatalogueEntry {
  return { status, exit, message, otherStatuses };
}

export const ERRORS = {
  invalid_json: entry(400, 2, 'The request body is not valid JSON.'),
  invalid_request: entry(400, 2, 'The request does not fit its schema.'),
  bad_aid: entry(
    400,
    2,
    'This is not a valid agent id (AID). A native one starts with "aid1"; check it for a mistyped character.',
  ),
  bad_key: entry(400, 2, 'This is not a valid key. Ed25519 private keys are 32-byte seeds in 64 hex characters.'),
  bad_delegation: entry(400, 2, 'The delegation proof does not verify.'),
  bad_record: entry(400, 2, 'The signed record does not verify.'),
  bad_card: entry(502, 4, 'The card of this agent is refused.', [400]),
  bad_service_name: entry(
    400,
    2,
    `A service name is 1 to ${MAX_SERVICE_NAME_CHARS} characters of lower-case letters, digits, ".", "-" and "_", such as "lang.translate".`,
  ),
  bad_service_address: entry(
    400,
    2,
    'A bound service is host:port, tcp://host:port, http://host:port, https://host:port or https+insecure://host:port, and not the daemon itself.',
  ),
  local_aid_required: entry(400, 2, 'Several agents are registered here: say which one acts, with local_aid.'),
  unauthorized: entry(401, 4, 'This request needs the API token: send "Authorization: Bearer <token>".'),
  forbidden_host: entry(403, 4, 'The Host header does not name this machine. Use 127.0.0.1, [::1] or localhost.'),
  forbidden_origin: entry(403, 4, 'Requests from other web sites are refused.'),
  local_only: entry(403, 4, 'This operation is only for programs on the same machine.'),
  operational_key_mismatch: entry(403, 4, "The operational key is not this agent's.", [409]),
  access_denied: entry(
    403,
    4,
    'The remote agent refuses this caller. Ask its owner to allow your AID, or pass access_token.',
  ),
  bad_evidence: entry(
    403,
    4,
    'The called node does not take the signature that this call carries. Set the clock of this machine, or switch it off with "svc evidence off".',
  ),
  not_found: entry(404, 5, 'There is no such thing here.'),
  resolve_failed: entry(
    404,
    5,
    'This agent was not found on the network: it is offline, not published, or on another network.',
  ),
  method_not_allowed: entry(405, 2, 'This path does not take this method.'),
  too_large: entry(413, 2, 'The request is over its size limit.', [431]),
  unsupported_media_type: entry(415, 2, 'Send "Content-Type: application/json" with every write.'),
  rate_limited: entry(429, 1, 'Too many requests. Wait for the time in Retry-After, then try again.'),
  no_inbound: entry(503, 1, 'The remote agent has no service bound. Its owner can bind one with "svc inbound bind".'),
  calls_only: entry(
    403,
    4,
    'The service of the remote agent takes calls, not tunnels: call it with "svc get", or ask its owner to bind it as http+tcp://host:port.',
  ),
  tunnels_only: entry(
    403,
    4,
    'The service of the remote agent takes tunnels, not calls: open one with "svc tunnel open", or ask its owner to bind it as host:port.',
  ),
  inbound_unreachable: entry(502, 1, 'The remote agent is there, but its bound service does not answer.'),
  bad_response: entry(502, 1, 'The service of the remote agent sent a response that cannot be passed on.'),
  loop_detected: entry(
    508,
    1,
    'The call came back to an agent that it has passed: the service of an agent is its own local address, or two point at each other. Bind another service with "svc inbound bind".',
  ),
  connect_failed: entry(502, 1, 'The remote node cannot be reached. It may be offline or behind a closed network.'),
  protocol_error: entry(502, 1, 'The other side broke the protocol.'),
  timeout: entry(504, 1, 'The operation took too long and was given up.', [408]),
  cancelled: entry(499, 1, 'The operation was cancelled.'),
  network_not_ready: entry(
    503,
    1,
    'No other node is known yet. Type "svc invite" on a machine that runs svcd and "svc join <the line>" here, or start a second daemon on this LAN.',
  ),
  clock_wrong: entry(
    502,
    1,
    'The clock of this machine and those of other nodes disagree: set the clock, and let NTP keep it.',
  ),
  network_unavailable: entry(503, 1, 'This node reaches no other node. Check the network connection of this machine.'),
  not_acknowledged: entry(
    503,
    1,
    'No node acknowledged the record. The network may be unreachable; it will be tried again.',
  ),
  stale_sequence: entry(409, 1, 'The network holds a newer record of this agent: it also runs elsewhere.'),
  port_in_use: entry(409, 1, 'The local port is already in use.'),
  relay_required: entry(412, 1, 'The peer can only be reached through a relay, and relays are disabled for this call.'),
  not_friends: entry(403, 4, 'Chat needs an accepted request first: send one with chat request.'),
  wrong_state: entry(409, 1, 'The relationship is not in a state that allows this.', [412]),
  self: entry(409, 2, 'The peer is this agent itself.'),
  not_member: entry(403, 4, 'This agent is not a member of the group.'),
  creator_cannot_leave: entry(409, 1, 'The creator of a group cannot leave it.'),
  files_root_required: entry(
    409,
    1,
    'Objects are off: files_root is "none". Set it to a folder, or to nothing for the default one.',
  ),
  gone: entry(410, 5, 'This no longer exists.'),
  quota_exceeded: entry(413, 1, 'A quota is used up.'),
  tool_error: entry(422, 1, 'The tool reports an error.'),
  config_invalid: entry(400, 2, 'The configuration is not valid.'),
  already_running: entry(409, 1, 'Another svcd runs on this data directory.'),
  address_in_use: entry(409, 1, 'The address is already in use by another program.'),
  daemon_unreachable: entry(503, 3, 'The daemon does not answer. Start it with "svcd", or say where it is with --api.'),
  agent_exists: entry(409, 1, 'This agent is registered here already.'),
  wrong_password: entry(403, 4, 'The password does not open this file, or its beginning is damaged.'),
  bad_file: entry(400, 2, 'This is no file that svcd wrote, or it is damaged.'),
  key_locked: entry(409, 4, 'The key store is sealed: give the passphrase.'),
  key_exposed: entry(500, 4, 'Others can read the key store: it must belong to this user alone.'),
  key_damaged: entry(500, 1, 'A key file is damaged. Restore it from a backup, or register the agent again.'),
  store_corrupt: entry(500, 1, 'The database is damaged or was written by a newer svcd.'),
  not_writable: entry(500, 1, 'A file cannot be written: check its permissions and the free space on the disk.'),
  internal: entry(500, 1, 'Something went wrong inside the daemon; its log says more.'),
} as const satisfies Record<string, CatalogueEntry>;

/** A stable error code of the API. */
export type ErrorCode = keyof typeof ERRORS;

/** Facts that go with an error, shown to the caller: never a secret. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

interface SvcErrorOptions {
  readonly message?: string;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
  /** One of the catalogue's `otherStatuses` for this code. */
  readonly status?: number;
  /** What a `not_found` did not find: surfaces say where such things are listed. */
  readonly thing?: Thing;
}

/** Kinds of things that may not be there. */
export type Thing =
  | 'agent'
  | 'tunnel'
  | 'origin'
  | 'group'
  | 'entry'
  | 'object'
  | 'offer'
  | 'file'
  | 'service'
  | 'tool'
  | 'card';

/** The only error that crosses a layer on purpose: a code of the catalogue and typed details. */
export class SvcError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;
  /** What was not found, where that is known. */
  readonly thing: Thing | undefined;
  /** HTTP status of this error. */
  readonly status: number;

  constructor(code: ErrorCode, options: SvcErrorOptions = {}) {
    super(options.message ?? ERRORS[code].message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SvcError';
    this.code = code;
    this.details = options.details;
    this.thing = options.thing;
    this.status = options.status ?? ERRORS[code].status;
  }

  /** Exit code of `svc` for this error. */
  get exit(): ExitCode {
    return ERRORS[this.code].exit;
  }
}

/** The code of a system's error, such as `ENOENT`. */
export function codeOf(error: unknown, otherwise = 'unknown error'): string {
  return error instanceof Error && 'code' in error ? String(error.code) : otherwise;
}

/** What a look-up of an agent that finds nothing fails with. */
const UNRESOLVED: ReadonlySet<ErrorCode> = new Set(['resolve_failed', 'network_unavailable', 'clock_wrong']);

/** Says that an agent is not one of this daemon. */
export function noSuchAgent(aid: string): SvcError {
  return new SvcError('not_found', { thing: 'agent', message: 'No such agent is registered here.', details: { aid } });
}

/** True where `code` is one of ours: for codes that come from a peer or a daemon of another version. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** True if an agent was not found, whatever the cause. */
export function isUnresolved(error: unknown): boolean {
  return error instanceof SvcError && UNRESOLVED.has(error.code);
}
