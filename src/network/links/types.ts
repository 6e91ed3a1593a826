/** Authenticated byte streams between two AIDs, over one QUIC connection per pair of nodes. */
import type { Duplex } from 'node:stream';
import type { Address } from '../../foundation/address.ts';
import type { AskKind } from '../../foundation/domain/access.ts';
import type { LinkPathKind } from '../../foundation/domain/tunnels.ts';
import type { ErrorCode } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { DelegationMemory } from '../../foundation/node-parts.ts';
import type { OpeningTrace } from '../../foundation/traces/traced-request.ts';
import type { NodePlace, NodeSilence } from '../peers/dial.ts';

/** Purposes of links. The called side selects the handler by purpose. At most 16 characters. */
export const PURPOSES = [
  'http',
  'tcp',
  'tcp-probe',
  'admin',
  'note',
  'chat',
  'group',
  'object',
  'push-box',
  'push',
  'ask',
  'trace',
  'entry',
  'public',
] as const;
export type Purpose = (typeof PURPOSES)[number];
/** Purposes that never use the access list of the called agent: the check of their handler permits them. */
export const DOOR_PURPOSES: ReadonlySet<Purpose> = new Set<Purpose>(['entry', 'public']);
/** The purposes of tunnels: a connection, and the question whether one would be accepted. */
export const TUNNEL_PURPOSES = ['tcp', 'tcp-probe'] as const satisfies readonly Purpose[];

/** The path of a link: the `Path` of its connection, or "local" on the same daemon. */
export interface LinkPath {
  readonly kind: LinkPathKind;
  readonly remote: Address | null;
  readonly source: string | null;
  /** As in `Path`. */
  readonly isSlowForBulk?: boolean;
  /** Milliseconds; 0 for an agent on the same daemon. */
  readonly rttMs: number;
  /** True if it uses a faster transport than the QUIC connection. */
  readonly isUpgraded?: boolean;
}

/** Caller, called agent and purpose of a stream. */
export interface LinkNames {
  readonly caller: Aid;
  readonly called: Aid;
  readonly purpose: Purpose;
  /** The credential that the caller presents to the called agent's ACL, if any. */
  readonly accessToken: string | undefined;
  /** The proven key of the other node; null on the same daemon. */
  readonly nodeKey: Uint8Array | null;
}

/** The two agents of a link. */
export type LinkPair = Pick<LinkNames, 'caller' | 'called'>;

/** A stream from `caller` to `called`, both proven to the other side. */
export interface LinkStream extends Duplex, LinkNames {
  path(): LinkPath;
  /** Sent and lost packets of the link's connection; missing on the same daemon. */
  packets?(): { readonly sent: number; readonly lost: number };
  /** True if new links to the node use a faster transport. */
  isOutdated?(): boolean;
  /** To be called when a request is sent on it later: silence of the node counts from then. Missing on the same daemon. */
  expectAnswer?(): void;
  /** As `Stream.release`; missing on the same daemon, because both ends share their chunks. */
  release?(chunk: Buffer): void;
  /** Resets another stream of the same two agents when the proof of this link no longer counts; missing on the same daemon. */
  coverByProof?(other: Duplex): void;
  /** Counts the link after its last use, until it closes; missing for links that a local agent opened. */
  lingers?(): void;
}

/** An identity of this daemon that may open and accept links. */
export interface LocalIdentity {
  readonly aid: Aid;
  readonly delegation: Delegation;
  /** The public key of `sign`, if it was computed. */
  readonly publicKey?: Uint8Array;
  /** Signs with the operational key. */
  sign(message: Uint8Array): Uint8Array;
}

/** The identities of this daemon. */
export interface LocalAgents {
  /** The identity of a local agent; null if it is not here. Links and the directory also have the identity of the node. */
  readonly identity: (aid: Aid) => LocalIdentity | null;
}

/** The node of an agent, from a verified endpoint record. */
export interface AgentLocation extends NodePlace {
  readonly aid: Aid;
  /** `issuedAt` of the newest known delegation. Older ones are refused. */
  readonly delegationIssuedAt: number;
}

export interface LocateOptions {
  readonly fresh: boolean;
  readonly signal?: AbortSignal;
  readonly onLikely?: (place: AgentLocation) => void;
}

/** Finds agents. `Resolver` does, with the record network. */
export interface Locator {
  /**
   * Finds the node of a remote agent. `fresh` ignores all caches, after a failed dial of a cached place. `onLikely` may
   * receive a verified place before the search for newer ones is complete.
   * @throws SvcError `resolve_failed`
   */
  locate(aid: Aid, options: LocateOptions): Promise<AgentLocation>;
}

/** Caller, called agent and purpose of a requested link. */
export type LinkAsk = Pick<LinkNames, 'caller' | 'called' | 'purpose'>;

export interface LinksDependencies extends LocalAgents {
  readonly resolver: Locator;
  /**
   * Checks whether a verified caller may open a link to an agent on this daemon.
   * @throws SvcError `access_denied`, `rate_limited`
   */
  authorize(request: AccessRequest): void | Promise<void>;
  /**
   * True if the owner of the called agent named the caller by its AID. The caller's node then has priority over
   * strangers.
   */
  isNamed?(names: LinkPair): boolean;
  /** False if the access list of the called agent excludes the caller although another rule permitted the link. */
  isAdmitted?(ask: LinkAsk): boolean;
  readonly seen?: DelegationMemory;
}

/** A request for permission. */
export interface AccessRequest extends LinkNames {
  /** The source for limits on the caller's node, as in `Path`; null on the same daemon. */
  readonly source: string | null;
}

/** The access lists of local agents. */
export interface Permissions {
  /** Checks a link, or an open one again. @throws SvcError `access_denied`, `rate_limited` */
  readonly authorize: (request: AccessRequest) => void | Promise<void>;
  /** True if the owner of the called agent named the caller by its AID. The caller's node then has priority over strangers. */
  readonly isNamed: (names: LinkPair) => boolean;
}

export interface OpenOptions {
  readonly accessToken?: string | undefined;
  readonly signal?: AbortSignal;
  /** Timeout of all attempts together, milliseconds. */
  readonly timeoutMs?: number;
  /** True if no third node may carry the packets of this link. */
  readonly disableRelay?: boolean;
  /** The first bytes of the link. They are sent with its header, so they save a round trip. */
  readonly first?: FirstBytes;
  /** Watches for silence of the node before the answer to the header. */
  readonly silence?: NodeSilence;
  /** Records the steps. */
  readonly trace?: OpeningTrace;
  /** True if the owner did not choose the agent: its node does not become known, so it can evict no stranger. */
  readonly isUnasked?: boolean;
  /** True if many bytes may follow. If packet loss slows the link down, it continues on a lane, if one is possible. */
  readonly bulk?: boolean;
}

/** The target of the first bytes. */
export interface FirstPlace {
  /** The process on the other side; empty on the same daemon. */
  readonly instance: string;
  /** True if a packet of the other node arrived just now, so it is most likely reachable. */
  readonly isFresh: boolean;
}

/** The first bytes of a link, sent before the answer of the other side. They need no extra round trip. */
export interface FirstBytes {
  /**
   * The bytes for one attempt. An attempt may fail after the other side received them. The next attempt calls this
   * again.
   * @throws SvcError if no other attempt is allowed
   */
  bytes(place: FirstPlace): Uint8Array;
  /**
   * An attempt may write more bytes until its answer.
   * @param write writes more bytes; null after the answer
   */
  follow?(write: ((bytes: Uint8Array) => void) | null): void;
  /** The last attempt at a place was refused, so its bytes had no effect. */
  refused?(): void;
  /** The link ends after these bytes. */
  readonly isAll?: boolean;
}

export interface Links {
  /**
   * Opens a stream to a local or remote agent.
   * @throws SvcError `resolve_failed`, `connect_failed`, `access_denied`, `no_inbound`, `timeout`, `cancelled`,
   *   `protocol_error`; `relay_required`, only for links of tunnels and calls, if no allowed path is left
   */
  open(local: Aid, remote: Aid, purpose: Purpose, options?: OpenOptions): Promise<LinkStream>;
  /**
   * Sets the handler for streams of a purpose. Each purpose has one handler, set before the endpoint starts.
   * @param check runs after the permission; its error refuses the link
   */
  accept(purpose: Purpose, handler: (stream: LinkStream) => void, check?: (request: AccessRequest) => void): void;
  /** Stops using the connection to an agent's node. The next `open` dials again. */
  reset(remote: Aid): void;
}

/** Current paths to agents. */
export interface LinkPaths {
  /**
   * The path of a new link to an agent: that of the connection to its last node. Null without a suitable connection.
   */
  path(remote: Aid, disableRelay: boolean): LinkPath | null;
  /** Adds a listener for a new path of new links. Returns a function that removes it. */
  onPathChange(handler: () => void): () => void;
}

/** Records permission decisions about callers of local agents. */
export interface CallerNotes {
  /** The caller was accepted. */
  entered(request: AccessRequest): void;
  /** The caller was refused. Only codes about permission are recorded. */
  refused(request: AccessRequest, code: ErrorCode): void;
}

/** What a caller asks the owner of an agent for, after its link was refused. */
export interface AccessAsk {
  readonly kind: AskKind;
  /** A short description, such as a method and a path. */
  readonly asked: string;
  /** The MCP tool that it wants to use, if it named one. */
  readonly tool: string | null;
  /** A text to the owner. */
  readonly note: string;
  /** The name that the caller gives itself. */
  readonly name?: string | undefined;
  /** How long the caller waits for the decision, seconds. */
  readonly waitS: number;
}

/** How a caller asks, if the owner of the called agent must decide. */
export type AskOptions = Pick<AccessAsk, 'note' | 'waitS'>;

/**
 * Asks the owner of a remote agent. Resolves when it has allowed the caller.
 * @throws SvcError `access_pending`, `access_denied`, `rate_limited`, and as `Links.open`
 */
export type AskOwner = (local: Aid, remote: Aid, ask: AccessAsk, signal?: AbortSignal) => Promise<void>;

/** An exchange on a link, such as a call, that may begin. */
export interface Admission {
  /** Limits a call to these MCP tools; null without a limit. */
  readonly tools: readonly string[] | null;
  /** With `tools`, the call may also use everything else of the MCP server, such as its resources. */
  readonly isServer: boolean;
  /**
   * Begins the exchange. Returns a function for its end. Null if neither has an effect.
   * @throws SvcError `access_denied` if it was allowed once and another one was faster
   */
  readonly begin: (() => () => void) | null;
}

/** The permission request for an open link: at each request on it, and after a change of the rules. */
export function accessRequestOf(link: LinkStream): AccessRequest {
  const { caller, called, purpose, accessToken, nodeKey } = link;
  return { caller, called, purpose, accessToken, nodeKey, source: link.path().source };
}

/** Checks the permission of open links again after a change of the rules. Reports each refused link with its error. */
export async function askAgain<T extends { readonly link: LinkStream }>(
  all: Iterable<T>,
  authorize: (request: AccessRequest, one: T) => void | Promise<void>,
  refused: (one: T, error: unknown) => void,
): Promise<void> {
  const ask = async (one: T): Promise<void> => authorize(accessRequestOf(one.link), one);
  await Promise.all(Array.from(all, (one) => ask(one).catch((error: unknown) => refused(one, error))));
}
