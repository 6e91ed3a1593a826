/** Authenticated byte streams between two AIDs, over one pooled QUIC connection per pair of nodes. */
import type { Duplex } from 'node:stream';
import type { Address } from '../../foundation/address.ts';
import type { LinkPathKind } from '../../foundation/domain/tunnels.ts';
import type { ErrorCode } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { NodePlace } from '../peers/dial.ts';

/** What a link is for: the called side dispatches on it. At most 16 characters. */
export const PURPOSES = [
  'http',
  'tcp',
  'tcp-probe',
  'admin',
  'note',
  'chat',
  'room',
  'object',
  'push-box',
  'push',
] as const;
export type Purpose = (typeof PURPOSES)[number];
/** The purposes of tunnels: a connection, and the question whether one would be accepted. */
export const TUNNEL_PURPOSES = ['tcp', 'tcp-probe'] as const satisfies readonly Purpose[];

/** How a link reaches the other agent: the `Path` of its connection, or none on the same daemon. */
export interface LinkPath {
  readonly kind: LinkPathKind;
  readonly remote: Address | null;
  readonly source: string | null;
  /** Milliseconds; 0 for an agent on the same daemon. */
  readonly rttMs: number;
  /** True where it goes beside the QUIC connection: `network/near`. */
  readonly isUpgraded?: boolean;
}

/** Who speaks to whom on a stream, and why. */
export interface LinkNames {
  readonly caller: Aid;
  readonly called: Aid;
  readonly purpose: Purpose;
  /** The credential that the caller presents to the called agent's ACL, if any. */
  readonly accessToken: string | undefined;
  /** The key that the other node proved in its handshake; null for an agent on the same daemon. */
  readonly nodeKey: Uint8Array | null;
}

/** A stream from `caller` to `called`; both have been proven to the other side before it is handed over. */
export interface LinkStream extends Duplex, LinkNames {
  path(): LinkPath;
  /** Packets sent to the other node over the link's connection, and how many of them were lost; missing on the same daemon. */
  packets?(): { readonly sent: number; readonly lost: number };
  /** True where new links to the same node go a quicker way. */
  isOutdated?(): boolean;
  /** As `Stream.release`; missing on the same daemon, where both ends share their chunks. */
  release?(chunk: Buffer): void;
  /** Counts the link among the streams that linger, until it closes; missing if an agent here opened it. */
  lingers?(): void;
}

/** An identity of this daemon that may open and accept links. */
export interface LocalIdentity {
  readonly aid: Aid;
  readonly delegation: Delegation;
  /** The key that `sign` uses; missing where nobody has worked it out. */
  readonly publicKey?: Uint8Array;
  /** Signs with the operational key. */
  sign(message: Uint8Array): Uint8Array;
}

/** Where an agent is hosted, from a verified endpoint record. */
export interface AgentLocation extends NodePlace {
  readonly aid: Aid;
  /** `issuedAt` of the newest delegation seen for it: an older one is refused. */
  readonly delegationIssuedAt: number;
}

export interface LocateOptions {
  readonly fresh: boolean;
  readonly signal?: AbortSignal;
  readonly onLikely?: (place: AgentLocation) => void;
}

/** Who would speak to whom, and why. */
export type LinkAsk = Pick<LinkNames, 'caller' | 'called' | 'purpose'>;

export interface LinksDependencies {
  /** The identity of an agent (or of the node itself) on this daemon; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
  /**
   * Finds where a remote agent is. `fresh` asks past every cache, after a dial of a cached place failed. `onLikely` may be
   * told of a verified place before it is known that no newer one is there.
   * @throws SvcError `resolve_failed`
   */
  locate(aid: Aid, options: LocateOptions): Promise<AgentLocation>;
  /**
   * Asks whether a proven caller may speak to a called agent here.
   * @throws SvcError `access_denied`, `rate_limited`
   */
  authorize(request: AccessRequest): void | Promise<void>;
  /** True if the owner of a called agent let a caller in by its AID: strangers make room for the caller's node. */
  isNamed?(names: Pick<LinkNames, 'caller' | 'called'>): boolean;
  /** False if the access list of a called agent shuts a caller out, whose link another rule let pass. */
  isAdmitted?(ask: LinkAsk): boolean;
  /**
   * Keeps the newest delegation seen of an agent for longer than this process lives. Unix seconds. `source`: the IP address
   * of a caller that was let in; null if this node called the agent.
   */
  noteDelegation?(aid: Aid, issuedAt: number, source: string | null): void;
  /** `issuedAt` of the newest delegation kept; 0 where none is known. An older one is refused. */
  newestDelegation?(aid: Aid): number;
}

/** What a caller asks to be let in for. */
export interface AccessRequest extends LinkNames {
  /** Whom the connection of the caller's node counts for, as `Path`; null where the caller is on the same daemon. */
  readonly source: string | null;
}

export interface OpenOptions {
  readonly accessToken?: string | undefined;
  readonly signal?: AbortSignal;
  /** Give up after this many milliseconds, all attempts together. */
  readonly timeoutMs?: number;
  /** True where no third node may carry the packets of this link. */
  readonly disableRelay?: boolean;
  /** The first bytes of the link: they go out with its header where the called agent is proven on the connection already. */
  readonly first?: FirstBytes;
}

/** Where the first bytes of a link would go. */
export interface FirstPlace {
  /** Names the process on the other side; empty on this very daemon. */
  readonly instance: string;
  /** Whether the other node was heard just now: it will most likely hear this. */
  readonly isFresh: boolean;
}

/** What goes out first on a link, before the other side has answered: such bytes cost no round trip. */
export interface FirstBytes {
  /**
   * The bytes of an attempt to open the link. An attempt may fail after the other side has got them, and another one
   * asks for them again.
   * @throws SvcError where no other attempt may be made
   */
  bytes(place: FirstPlace): Uint8Array;
  /**
   * While an attempt waits for its answer, more may be said on it.
   * @param write says more; null once that is over
   */
  follow?(write: ((bytes: Uint8Array) => void) | null): void;
  /** The last attempt at a place was refused: nobody has acted on its bytes. */
  refused?(): void;
  /** Nothing is said behind them: the link is ended with them. */
  readonly isAll?: boolean;
}

export interface Links {
  /**
   * Opens a stream to an agent, on this daemon or elsewhere.
   * @throws SvcError `resolve_failed`, `connect_failed`, `access_denied`, `no_inbound`, `timeout`, `cancelled`, `protocol_error`;
   *   `relay_required`, of links for tunnels and calls only, if no allowed path is left
   */
  open(local: Aid, remote: Aid, purpose: Purpose, options?: OpenOptions): Promise<LinkStream>;
  /**
   * Receives the streams of one purpose; set once each, before the endpoint starts.
   * @param check asked after the permission; what it throws refuses the link
   */
  accept(purpose: Purpose, handler: (stream: LinkStream) => void, check?: (request: AccessRequest) => void): void;
  /** Drops the pooled connection that leads to an agent, so that the next `open` dials anew. */
  reset(remote: Aid): void;
}

/** How agents are reached at the moment. */
export interface LinkPaths {
  /**
   * The path that a link to an agent would take now: that of the connection to the node which it was last met on; null
   * where none stands that a link may use.
   */
  path(remote: Aid, disableRelay: boolean): LinkPath | null;
  /** Calls back when new links to some node begin to take another path. Returns how to stop. */
  onPathChange(handler: () => void): () => void;
}

/** What is told of each who asks an agent here to be let in. */
export interface CallerNotes {
  /** It was let in. */
  entered(request: AccessRequest): void;
  /** It was not; codes that say something else than that are left out. */
  refused(request: AccessRequest, code: ErrorCode): void;
}

/** What to ask access control about a link that is already open: at each request on it, and after a change of the rules. */
export function accessRequestOf(link: LinkStream): AccessRequest {
  const { caller, called, purpose, accessToken, nodeKey } = link;
  return { caller, called, purpose, accessToken, nodeKey, source: link.path().source };
}

/** Asks access control again about all of these, after a change of the rules; tells of each whom it now refuses, and why. */
export async function askAgain<T extends { readonly link: LinkStream }>(
  all: Iterable<T>,
  authorize: (request: AccessRequest, one: T) => void | Promise<void>,
  refused: (one: T, error: unknown) => void,
): Promise<void> {
  const ask = async (one: T): Promise<void> => authorize(accessRequestOf(one.link), one);
  await Promise.all(Array.from(all, (one) => ask(one).catch((error: unknown) => refused(one, error))));
}
