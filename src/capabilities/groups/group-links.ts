/** Syncs groups with other nodes: opens links to members, and serves the links of agents that may read a group. */
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { RateQuota, type RateQuotaLimits } from '../../foundation/rate-limit.ts';
import { awakeClock } from '../../foundation/stall.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { decodeEntry, verifyEntry } from './entry.ts';
import { GroupExchange } from './exchange.ts';
import { markRemoved } from './notices.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies } from './types.ts';
import { encode, send } from './wire.ts';
import type { GroupWriter } from './writer.ts';

/** Timeout for connecting to the node of a member, milliseconds. */
const OPEN_TIMEOUT_MS = 8000;
/** Timeout for one session, milliseconds. */
const SESSION_TIMEOUT_MS = 120_000;
/** First messages up to this length are sent with the header of the link. A refusing node discards 64 KiB. */
const MAX_FIRST_BYTES: number = 32 * 1024;
/** Rate of new sessions. */
const SESSION_RATES: RateQuotaLimits = {
  perKey: { perSecond: 100, burst: 500 },
  perSource: { perSecond: 200, burst: 1000 },
  perNetwork: { perSecond: 300, burst: 1500 },
  strangers: { perSecond: 500, burst: 2500 },
};
/** Rate of pushed entries. */
const PUSH_RATES: RateQuotaLimits = {
  perKey: { perSecond: 200, burst: 5000 },
  perSource: { perSecond: 400, burst: 10_000 },
  strangers: { perSecond: 1000, burst: 20_000 },
};
/**
 * Limits of sessions without a first message: in total, of one pair, and of the strangers of one source and of one
 * network.
 */
const MAX_PENDING = 128;
const MAX_PENDING_OF_PAIR = 8;
const MAX_PENDING_OF_SOURCE = 16;
const MAX_PENDING_OF_NETWORK = 32;
/** Pending sessions reserved for known agents. */
const RESERVED_PENDING = 64;
/**
 * Limits of active sessions: in total, of one agent, and of the strangers of one source. An agent calls once for each
 * local agent that is in a group with it.
 */
const MAX_ACTIVE = 128;
const MAX_ACTIVE_OF_AGENT = 32;
const MAX_ACTIVE_OF_SOURCE = 32;
/** Active sessions reserved for members. Agents that only know the join secret cannot use them. */
const RESERVED_ACTIVE = 64;

type LinkParts = Pick<
  GroupsDependencies,
  'groups' | 'entries' | 'delegations' | 'clock' | 'links' | 'log' | 'events' | 'isKnown'
>;

export class GroupLinks {
  /** Notified of an agent that has called and is therefore reachable. */
  readonly peerSeen: Listeners<[peer: Aid]> = new Listeners();
  /** Notified during a sync, when this replica has what the peer has. */
  readonly fetched: Listeners<[Replica]> = new Listeners();
  readonly #deps: LinkParts;
  readonly #replicas: Replicas;
  readonly #writer: GroupWriter;
  readonly #exchange: GroupExchange;
  readonly #stop = new AbortController();
  readonly #sessionRates: RateQuota;
  readonly #pushRates: RateQuota;
  readonly #pending = new Quota(
    {
      perKey: MAX_PENDING_OF_PAIR,
      perSource: MAX_PENDING_OF_SOURCE,
      perNetwork: MAX_PENDING_OF_NETWORK,
      total: MAX_PENDING,
      reserved: RESERVED_PENDING,
    },
    { ownYields: true },
  );
  readonly #active = new Quota({
    perKey: MAX_ACTIVE_OF_AGENT,
    perSource: MAX_ACTIVE_OF_SOURCE,
    total: MAX_ACTIVE,
    reserved: RESERVED_ACTIVE,
  });

  /** Accepts the links of purpose `group`. */
  constructor(dependencies: LinkParts, replicas: Replicas, writer: GroupWriter) {
    this.#deps = dependencies;
    this.#replicas = replicas;
    this.#writer = writer;
    this.#exchange = new GroupExchange(dependencies, writer, this.#stop.signal);
    this.#sessionRates = new RateQuota(SESSION_RATES, dependencies);
    this.#pushRates = new RateQuota(PUSH_RATES, dependencies);
    dependencies.links.accept('group', (link) => detach(this.#answer(link)));
  }

  stop(): void {
    this.#stop.abort(new SvcError('cancelled'));
  }

  /**
   * Syncs a replica with a peer, in both directions.
   * @throws SvcError as `Links.open`; `not_member` if the peer refuses; `protocol_error`, `timeout`
   */
  async sync(replica: Replica, peer: Aid): Promise<void> {
    // protocol-groups.md, steps 6 and 9
    const proof = this.#replicas.proof(replica);
    const hello = encode({ type: 'hello', groupId: replica.groupId, have: this.#exchange.have(replica), proof });
    // An empty replica needs everything.
    const wanted = replica.maxSeq === 0 ? [encode({ type: 'pull', after: 0 })] : [];
    await this.#call(replica, peer, [hello, ...wanted], async (link) => {
      const answer = await this.#exchange.next(link);
      if (answer.type === 'refuse') return this.#refused(replica, peer, answer.entry);
      if (answer.type !== 'have') throw new SvcError('protocol_error');
      await this.#exchange.fetch(link, replica, peer, answer.have, wanted.length > 0);
      this.fetched.notify(replica);
      send(link, { type: 'have', have: this.#exchange.have(replica) });
      await this.#exchange.serve(link, replica, () => replica.log.mayRead(peer));
    });
  }

  /** Pushes entries. Returns true if the peer also has all their ancestors. @throws SvcError as `sync` */
  async push(replica: Replica, peer: Aid, entries: readonly Uint8Array[]): Promise<boolean> {
    const push = encode({ type: 'push', groupId: replica.groupId, entries });
    return this.#call(replica, peer, [push], async (link) => {
      const answer = await this.#exchange.next(link);
      if (answer.type === 'refuse') return this.#refused(replica, peer, answer.entry);
      return answer.type === 'taken' && answer.complete;
    });
  }

  /** @param messages the first messages, which may be sent again: receiving them twice does no harm */
  async #call<T>(
    replica: Replica,
    peer: Aid,
    messages: readonly Uint8Array[],
    session: (link: LinkStream) => Promise<T>,
  ): Promise<T> {
    const bytes = Buffer.concat(messages);
    const isShort = bytes.length <= MAX_FIRST_BYTES;
    const options = { signal: this.#stop.signal, timeoutMs: OPEN_TIMEOUT_MS };
    const first = isShort ? { first: { bytes: () => bytes } } : {};
    const link = await this.#deps.links.open(replica.aid, peer, 'group', { ...options, ...first });
    if (!isShort) link.write(bytes);
    return this.#runSession(link, session);
  }

  async #runSession<T>(link: LinkStream, session: (link: LinkStream) => Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    link.on('error', () => {});
    const limit = awakeClock(clock).after(SESSION_TIMEOUT_MS, () => link.destroy());
    try {
      const result = await session(link);
      link.end();
      drainAndDestroy(link, clock);
      return result;
    } catch (error) {
      link.destroy();
      throw error;
    } finally {
      limit.cancel();
    }
  }

  async #refused(replica: Replica, peer: Aid, encoded: Uint8Array | undefined): Promise<never> {
    if (encoded !== undefined) {
      const entry = decodeEntry(encoded);
      await verifyEntry(entry, this.#deps.delegations);
      const isOurs = entry.groupId === replica.groupId && entry.kind === 'remove' && entry.to?.[0] === replica.aid;
      if (isOurs && mayRemove(replica, entry.author) && !replica.has(entry.id)) {
        const { added } = this.#writer.admit(replica, [entry], peer);
        // The parents of the removal are missing here, and no member sends them to a removed agent.
        if (added.length === 0) markRemoved(replica, entry.author, null, this.#deps);
      }
    }
    throw new SvcError('not_member', { message: 'The peer says that this agent is not a member of the group.' });
  }

  async #answer(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    const { groups, isKnown, log } = this.#deps;
    let pending: QuotaShare | null = null;
    try {
      const holder = pairHolder(link, isKnown(link.called, link.caller) || groups.hasMet(link.called, link.caller));
      if (!this.#sessionRates.take(holder)) return void link.destroy();
      const pendingShare = this.#pending.take(holder, { onEvict: () => link.destroy() });
      if (pendingShare === null) return void link.destroy();
      pending = pendingShare;
      await this.#runSession(link, (open) => this.#serve(open, pendingShare));
    } catch (error) {
      log.debug({ caller: link.caller, error }, 'a group link failed');
      link.destroy();
    } finally {
      pending?.release();
    }
  }

  async #serve(link: LinkStream, pendingShare: QuotaShare): Promise<void> {
    // protocol-groups.md, steps 7 and 9
    const peer = link.caller;
    const first = await this.#exchange.next(link);
    if (first.type !== 'hello' && first.type !== 'push') throw new SvcError('protocol_error');
    const replica = this.#replicas.served(link.called, first.groupId);
    const proof = first.type === 'hello' ? first.proof : joinProofIn(first.entries, peer);
    if (replica === null || !replica.log.mayRead(peer, proof)) return this.#refuse(link, replica, peer);
    pendingShare.release();
    const isMember = replica.role(peer) !== null;
    const active = this.#active.take({ ...pairHolder(link, isMember), key: peer });
    if (active === null) throw new SvcError('rate_limited');
    try {
      this.peerSeen.notify(peer);
      if (first.type === 'push') return await this.#receivePush(link, replica, peer, first.entries);
      send(link, { type: 'have', have: this.#exchange.have(replica) });
      const theirs = await this.#exchange.serve(link, replica, () => replica.log.mayRead(peer, proof));
      if (theirs === null) return;
      await this.#exchange.fetch(link, replica, peer, theirs);
      send(link, { type: 'done' });
    } finally {
      active.release();
    }
  }

  async #receivePush(link: LinkStream, replica: Replica, peer: Aid, entries: readonly Uint8Array[]): Promise<void> {
    const holder = pairHolder(link, replica.role(peer) !== null);
    if (!this.#pushRates.take(holder, Math.max(1, entries.length)))
      return send(link, { type: 'taken', complete: false });
    const { waiting } = await this.#exchange.admitEncoded(replica, entries, peer);
    send(link, { type: 'taken', complete: !waiting });
  }

  /** A removed agent receives the entry that removed it. An agent that never was a member learns nothing. */
  #refuse(link: LinkStream, replica: Replica | null, peer: Aid): void {
    send(link, { type: 'refuse', entry: replica?.removalEntry(peer) ?? undefined });
  }
}

/** The proof of the join secret in the `join` entry of a new member, which is the first entry that it pushes. */
function joinProofIn([first]: readonly Uint8Array[], joiner: Aid): Uint8Array | undefined {
  try {
    const entry = first === undefined ? null : decodeEntry(first);
    return entry?.kind === 'join' && entry.author === joiner ? entry.proof : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Whether `author` may remove the agent of the replica. No one can remove the creator, and only the creator can remove
 * an admin.
 */
function mayRemove(replica: Replica, author: Aid): boolean {
  const own = replica.role(replica.aid);
  const role = replica.role(author);
  return own !== 'creator' && (role === 'creator' || (role === 'admin' && own !== 'admin'));
}
