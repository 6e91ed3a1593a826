/**
 * The error catalog: each error code of the API with its HTTP status, the exit code of `svc` and its default message.
 * Codes are added, never renamed.
 */
import { MAX_SERVICE_NAME_CHARS } from './records/types.ts';

/** The command that starts a second daemon next to a running one, on free ports, and how `svc` finds it. */
export const SECOND_DAEMON_HINT =
  'svcd --data-dir ./second --listen :0 --api-addr 127.0.0.1:0 (its status: SVCD_DATA_DIR=./second svc status)';

/** Exit codes of `svc` and `svcd`. */
export const EXIT = { failed: 1, usage: 2, unreachable: 3, refused: 4, notFound: 5 } as const;
type ExitCode = (typeof EXIT)[keyof typeof EXIT];

interface CatalogEntry {
  readonly status: number;
  readonly exit: ExitCode;
  /** The failure and a remedy. Used if the throwing code gives no message. */
  readonly message: string;
  /** Other statuses that some operations return with this code. */
  readonly otherStatuses: readonly number[];
}

function entry(status: number, exit: ExitCode, message: string, otherStatuses: readonly number[] = []): CatalogEntry {
  return { status, exit, message, otherStatuses };
}

export const ERRORS = {
  invalid_json: entry(400, 2, 'The request body is not valid JSON. Check its syntax.'),
  invalid_request: entry(400, 2, 'Invalid request. See docs/reference/rest.md for what the operation accepts.'),
  bad_aid: entry(
    400,
    2,
    'This is not a valid agent ID (AID). A native one starts with "aid1". Check it for typing errors.',
  ),
  ambiguous_label: entry(400, 2, 'Several agents have this name. Give the AID of the agent that you mean.'),
  bad_key: entry(400, 2, 'This is not a valid key. An Ed25519 private key is a 32-byte seed in 64 hex characters.'),
  bad_delegation: entry(400, 2, 'Invalid delegation. Issue a new one with the master key.'),
  bad_record: entry(400, 2, 'Invalid signed record. Check its signature, sequence number and expiry time.'),
  bad_card: entry(502, 4, 'The card of this agent is invalid. Its owner must publish a new one.', [400]),
  bad_service_name: entry(
    400,
    2,
    `A service name is 1 to ${MAX_SERVICE_NAME_CHARS} characters of lower-case letters, digits, ".", "-" and "_", such as "lang.translate".`,
  ),
  bad_service_address: entry(
    400,
    2,
    'A service address is host:port, tcp://host:port, http://host:port, https://host:port or https+insecure://host:port. It must not be the daemon itself.',
  ),
  local_aid_required: entry(400, 2, 'Several agents are registered here. Choose one with local_aid.'),
  unauthorized: entry(401, 4, 'The API token is missing or wrong. Send "Authorization: Bearer <token>".'),
  traces_off: entry(409, 1, 'Traces are off. Run "svc config set traces true" and restart svcd.'),
  forbidden_host: entry(403, 4, 'The Host header does not name this machine. Use 127.0.0.1, [::1] or localhost.'),
  forbidden_origin: entry(403, 4, 'Requests from other websites are rejected. Open the address directly.'),
  local_only: entry(403, 4, 'Only programs on the same machine can do this. Run the command there.'),
  operational_key_mismatch: entry(
    403,
    4,
    'The operational key does not belong to this agent. Check the key and the AID.',
    [409],
  ),
  access_denied: entry(
    403,
    4,
    'The remote agent denies this caller. Ask its owner to allow your AID, or pass access_token.',
  ),
  not_accepted: entry(
    409,
    4,
    'The owner has not accepted this tool in its present form. Review it with "svc mcp hub changes".',
  ),
  access_pending: entry(
    403,
    4,
    'The owner of the remote agent has been asked to allow this caller. Repeat the request later, or wait for the decision with "Prefer: wait=60".',
  ),
  bad_evidence: entry(
    403,
    4,
    'The remote node rejected the evidence of this call. Check the clock of this machine, or turn evidence off with "svc evidence off".',
  ),
  not_found: entry(404, 5, 'Not found. Check the name or the ID.'),
  resolve_failed: entry(
    404,
    5,
    'The agent was not found in the network. It may be offline, unpublished, or in another network.',
  ),
  method_not_allowed: entry(405, 2, 'Method not allowed for this path. See docs/reference/rest.md.'),
  too_large: entry(413, 2, 'The request is too large. Send less data.', [431]),
  unsupported_media_type: entry(415, 2, 'Every write needs the header "Content-Type: application/json".'),
  rate_limited: entry(429, 1, 'Too many requests. Wait for the time in Retry-After, then retry.'),
  no_inbound: entry(503, 1, 'The remote agent has no service bound. Its owner can bind one with "svc inbound bind".'),
  calls_only: entry(
    403,
    4,
    'The service of the remote agent accepts calls, not tunnels. Call it with "svc get", or ask its owner to bind it as http+tcp://host:port.',
  ),
  tunnels_only: entry(
    403,
    4,
    'The service of the remote agent accepts tunnels, not calls. Open one with "svc tunnel open", or ask its owner to bind it as host:port.',
  ),
  inbound_unreachable: entry(
    502,
    1,
    'The remote agent is reachable, but its service gives no answer. Its owner can check it with "svc agents probe".',
  ),
  bad_response: entry(502, 1, 'The service of the remote agent sent an invalid HTTP response. Its owner must fix it.'),
  loop_detected: entry(
    508,
    1,
    'The call returned to an agent that it had already passed: an agent is bound to its own local address, or two agents are bound to each other. Bind another service with "svc inbound bind".',
  ),
  connect_failed: entry(502, 1, 'The remote node cannot be reached. It may be offline or behind a firewall.'),
  protocol_error: entry(502, 1, 'The peer violated the protocol. Update svcd on both sides.'),
  timeout: entry(504, 1, 'The operation timed out. Retry, or allow more time.', [408]),
  cancelled: entry(499, 1, 'The operation was cancelled.'),
  network_not_ready: entry(
    503,
    1,
    'No other node is known. Run "svc invite" on another machine with svcd and "svc join <invitation>" here, or start a second daemon on this LAN.',
  ),
  clock_wrong: entry(502, 1, 'The clock of this machine differs from other nodes. Set the clock and turn on NTP.'),
  network_unavailable: entry(
    503,
    1,
    'This node cannot reach any other node. Check the network connection of this machine.',
  ),
  not_acknowledged: entry(503, 1, 'No node acknowledged the record. svcd retries; check the network connection.'),
  stale_sequence: entry(
    409,
    1,
    'The network has a newer record of this agent, so the agent also runs on another node. Stop it there, or export it there and import it here.',
  ),
  port_in_use: entry(409, 1, 'The local port is in use. Choose another one, or stop the program that uses it.'),
  relay_required: entry(
    412,
    1,
    'The peer can be reached only through a relay, and this call or this node does not allow relays.',
  ),
  bad_public_name: entry(
    400,
    2,
    'This name cannot be a public name. Use letters a to z, digits and single hyphens; www, api, mail and localhost are reserved.',
  ),
  name_taken: entry(409, 1, 'Another agent holds this public name, or one that looks like it. Choose another name.'),
  name_not_allowed: entry(
    403,
    4,
    'The entry does not serve this public name. Use one label in front of a domain of the entry, such as "demo".',
  ),
  entry_denied: entry(
    403,
    4,
    'This node is no entry, or gives this agent no public name. Its owner can permit it: svc entry allow <aid>.',
  ),
  no_entry: entry(
    409,
    1,
    'No entry for public names is known. Name one with --at <node>: a public node whose owner set public_names.',
  ),
  name_not_resolved: entry(
    502,
    1,
    'The public name does not lead to its entry. Correct the DNS record of the domain: it must be the address of the entry.',
  ),
  certificate_refused: entry(
    502,
    1,
    'The ACME server gave no certificate for the public name. See "svc expose list" for its reason.',
  ),
  certificate_limited: entry(
    429,
    1,
    'The ACME server limits certificates for this name or domain. svcd retries; the old certificate stays in use.',
  ),
  not_supported: entry(501, 2, 'This version of svcd does not support this.'),
  not_friends: entry(403, 4, 'These agents are not friends. Send a chat request first.'),
  wrong_state: entry(409, 1, 'The current state does not allow this. Check the state, then retry.', [412]),
  self: entry(409, 2, 'An agent cannot do this with itself. Use another agent.'),
  not_member: entry(403, 4, 'The agent is not a member of this group. Join it first.'),
  creator_cannot_leave: entry(409, 1, 'The creator of a group cannot leave it.'),
  files_root_required: entry(
    409,
    1,
    'Objects are off, because files_root is "none". Set it to a folder, or to an empty string for the default folder.',
  ),
  gone: entry(410, 5, 'This no longer exists.'),
  quota_exceeded: entry(413, 1, 'A quota is used up. Delete something, or wait until entries expire.'),
  tool_error: entry(422, 1, 'The tool reported an error.'),
  config_invalid: entry(400, 2, 'Invalid configuration. Correct it in config.toml, the environment or the flags.'),
  already_running: entry(409, 1, 'Another svcd uses this data directory. Stop it, or use another one with --data-dir.'),
  address_in_use: entry(409, 1, 'Another program uses this address. Stop it, or choose another address.'),
  daemon_unreachable: entry(
    503,
    3,
    'The daemon does not answer. Start it with "svcd", or give its address with --api.',
  ),
  agent_exists: entry(409, 1, 'The agent is already registered here.'),
  wrong_password: entry(403, 4, 'Wrong password, or the beginning of the file is damaged.'),
  bad_file: entry(400, 2, 'This file was not written by svcd, or it is damaged.'),
  key_locked: entry(409, 4, 'The key store is encrypted. Enter its passphrase.'),
  key_exposed: entry(500, 4, 'Other users can read the key store. Restrict access to the user that runs svcd.'),
  key_damaged: entry(500, 1, 'A key file is damaged. Restore it from a backup, or register the agent again.'),
  store_corrupt: entry(
    500,
    1,
    'The database is damaged, or a newer svcd wrote it. Restore a backup, or install the newer version.',
  ),
  not_writable: entry(500, 1, 'A file cannot be written. Check its permissions and the free space on the disk.'),
  internal: entry(500, 1, 'Internal error in the daemon. See its log, and report the error.'),
} as const satisfies Record<string, CatalogEntry>;

/** An error code of the API. */
export type ErrorCode = keyof typeof ERRORS;

/** Facts about an error for the caller, without secrets. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

interface SvcErrorOptions {
  readonly message?: string;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
  /** Another status of this code, from `otherStatuses`. */
  readonly status?: number;
  /** The kind of object that was not found. The CLI and MCP explain how to list such objects. */
  readonly thing?: ResourceKind;
}

/** Kinds of objects that can be missing. */
export type ResourceKind =
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
  | 'card'
  | 'trace';

/** The only error type that crosses layers: a code of the catalog with details. */
export class SvcError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;
  /** The kind of object that was not found, if known. */
  readonly thing: ResourceKind | undefined;
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

/** The code of a system error, such as `ENOENT`. */
export function codeOf(error: unknown, fallback = 'unknown error'): string {
  return error instanceof Error && 'code' in error ? String(error.code) : fallback;
}

/** Errors of a failed lookup. */
const UNRESOLVED: ReadonlySet<ErrorCode> = new Set(['resolve_failed', 'network_unavailable', 'clock_wrong']);

/** The error for an agent that is not registered on this daemon. */
export function noSuchAgent(aid: string): SvcError {
  return new SvcError('not_found', {
    thing: 'agent',
    message: 'This agent is not registered here.',
    details: { aid },
  });
}

/** True if `code` is in the catalog. Peers and daemons of other versions may send unknown codes. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** True if an agent was not found, for any reason. */
export function isUnresolved(error: unknown): boolean {
  return error instanceof SvcError && UNRESOLVED.has(error.code);
}
