/** Talks about groups with other nodes: calls them, and answers who may ask. */
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { Quota, type QuotaShare } from '../../foundation/quota.ts';
import { RateQuota, type RateQuotaLimits } from '../../foundation/rate-quota.ts';
import { awakeClock } from '../../foundation/stall.ts';
import { pairHolder } from '../../network/links/holder.ts';
import { drainAndDestroy } from '../../network/links/lingering.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { decodeEntry, provesSecret, verifyEntry } from './entry.ts';
import { GroupExchange, type GroupExchangeDependencies } from './exchange.ts';
import { markRemoved } from './notices.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import type { GroupsDependencies } from './types.ts';
import { send } from './wire.ts';

/** Milliseconds to reach a member's node. */
const OPEN_TIMEOUT_MS = 8000;
/** Milliseconds for one talk, however much there is to say. */
const TALK_TIMEOUT_MS = 120_000;
/** Talks that may begin. */
const TALK_RATES: RateQuotaLimits = {
  perKey: { perSecond: 100, burst: 500 },
  perSource: { perSecond: 200, burst: 1000 },
  perNetwork: { perSecond: 300, burst: 1500 },
  strangers: { perSecond: 500, burst: 2500 },
};
/** Entries that may be pushed. */
const PUSH_RATES: RateQuotaLimits = {
  perKey: { perSecond: 200, burst: 5000 },
  perSource: { perSecond: 400, burst: 10_000 },
  strangers: { perSecond: 1000, burst: 20_000 },
};
/** Talks whose first message has not come yet: of all, of one pair, of the strangers of one source and of one network. */
const MAX_AT_DOOR = 128;
const MAX_AT_DOOR_OF_PAIR = 8;
const MAX_AT_DOOR_OF_SOURCE = 16;
const MAX_AT_DOOR_OF_NETWORK = 32;
/** Places among them that strangers leave to agents that are known. */
const RESERVED_AT_DOOR = 64;
/** Talks with readers of groups: of all, of one agent (it calls for each local agent that is in a group with it), of the strangers of one source. */
const MAX_INSIDE = 128;
const MAX_INSIDE_OF_ONE = 32;
const MAX_INSIDE_OF_SOURCE = 32;
/** Places among them that whoever came with a join secret only leaves to members. */
const RESERVED_INSIDE = 64;

interface GroupLinksDependencies
  extends GroupExchangeDependencies,
    Pick<GroupsDependencies, 'links' | 'log' | 'events' | 'isKnown'> {
  readonly replicas: Pick<Replicas, 'served' | 'proof'>;
}

export class GroupLinks {
  /** Told of a member that has called: it is there. */
  readonly met: Listeners<[peer: Aid]> = new Listeners();
  readonly #deps: GroupLinksDependencies;
  readonly #exchange: GroupExchange;
  readonly #stop = new AbortController();
  readonly #talks: RateQuota;
  readonly #pushed: RateQuota;
  readonly #door = new Quota(
    {
      perKey: MAX_AT_DOOR_OF_PAIR,
      perSource: MAX_AT_DOOR_OF_SOURCE,
      perNetwork: MAX_AT_DOOR_OF_NETWORK,
      total: MAX_AT_DOOR,
      reserved: RESERVED_AT_DOOR,
    },
    { ownYields: true },
  );
  readonly #inside = new Quota({
    perKey: MAX_INSIDE_OF_ONE,
    perSource: MAX_INSIDE_OF_SOURCE,
    total: MAX_INSIDE,
    reserved: RESERVED_INSIDE,
  });

  /** Takes the links of purpose `group`. */
  constructor(dependencies: GroupLinksDependencies) {
    this.#deps = dependencies;
    this.#exchange = new GroupExchange(dependencies, this.#stop.signal);
    this.#talks = new RateQuota(TALK_RATES, dependencies);
    this.#pushed = new RateQuota(PUSH_RATES, dependencies);
    dependencies.links.accept('room', (link) => detach(this.#answer(link)));
  }

  stop(): void {
    this.#stop.abort(new SvcError('cancelled'));
  }

  /**
   * Brings a replica in step with a peer's, in both directions.
   * @throws SvcError as `Links.open`; `not_member` where the peer refuses; `protocol_error`, `timeout`
   */
  async sync(replica: Replica, peer: Aid): Promise<void> {
    // protocol-groups.md, steps 6 and 9
    await this.#call(replica, peer, async (link) => {
      const proof = this.#deps.replicas.proof(replica);
      const have = this.#exchange.have(replica);
      send(link, { type: 'hello', groupId: replica.groupId, have, proof });
      const answer = await this.#exchange.next(link);
      if (answer.type === 'refuse') return this.#refused(replica, peer, answer.entry);
      if (answer.type !== 'have') throw new SvcError('protocol_error');
      await this.#exchange.fetch(link, replica, peer, answer.have);
      send(link, { type: 'have', have: this.#exchange.have(replica) });
      await this.#exchange.serve(link, replica, () => this.#mayRead(replica, peer));
    });
  }

  /** Hands entries over; true where the peer has everything now that they build on. @throws as `sync` */
  async push(replica: Replica, peer: Aid, entries: readonly Uint8Array[]): Promise<boolean> {
    return this.#call(replica, peer, async (link) => {
      send(link, { type: 'push', groupId: replica.groupId, entries });
      const answer = await this.#exchange.next(link);
      if (answer.type === 'refuse') return this.#refused(replica, peer, answer.entry);
      return answer.type === 'taken' && answer.complete;
    });
  }

  async #call<T>(replica: Replica, peer: Aid, talk: (link: LinkStream) => Promise<T>): Promise<T> {
    const options = { signal: this.#stop.signal, timeoutMs: OPEN_TIMEOUT_MS };
    return this.#talk(await this.#deps.links.open(replica.aid, peer, 'room', options), talk);
  }

  async #talk<T>(link: LinkStream, talk: (link: LinkStream) => Promise<T>): Promise<T> {
    const { clock } = this.#deps;
    link.on('error', () => {});
    const limit = awakeClock(clock).after(TALK_TIMEOUT_MS, () => link.destroy());
    try {
      const said = await talk(link);
      link.end();
      drainAndDestroy(link, clock);
      return said;
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
        const { added } = this.#deps.writer.admit(replica, [entry], peer);
        // Its parents are missing here, and nobody hands them to an agent that was removed.
        if (added.length === 0) markRemoved(replica, entry.author, this.#deps);
      }
    }
    throw new SvcError('not_member', { message: 'The other side does not take this agent for a member.' });
  }

  async #answer(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    const { groups, isKnown, log } = this.#deps;
    let place: QuotaShare | null = null;
    try {
      const holder = pairHolder(link, isKnown(link.called, link.caller) || groups.hasMet(link.called, link.caller));
      if (!this.#talks.take(holder)) return void link.destroy();
      const atDoor = this.#door.take(holder, { onEvict: () => link.destroy() });
      if (atDoor === null) return void link.destroy();
      place = atDoor;
      await this.#talk(link, (open) => this.#converse(open, atDoor));
    } catch (error) {
      log.debug({ caller: link.caller, error }, 'syncing a group failed');
      link.destroy();
    } finally {
      place?.release();
    }
  }

  async #converse(link: LinkStream, atDoor: QuotaShare): Promise<void> {
    // protocol-groups.md, steps 7 and 9
    const peer = link.caller;
    const first = await this.#exchange.next(link);
    if (first.type !== 'hello' && first.type !== 'push') throw new SvcError('protocol_error');
    const replica = this.#deps.replicas.served(link.called, first.groupId);
    const proof = first.type === 'hello' ? first.proof : undefined;
    if (replica === null || !this.#mayRead(replica, peer, proof)) return this.#refuse(link, replica, peer);
    atDoor.release();
    const isMember = replica.role(peer) !== null;
    const inside = this.#inside.take({ ...pairHolder(link, isMember), key: peer });
    if (inside === null) throw new SvcError('rate_limited');
    try {
      this.met.notify(peer);
      if (first.type === 'push') return await this.#takePush(link, replica, peer, first.entries);
      send(link, { type: 'have', have: this.#exchange.have(replica) });
      const theirs = await this.#exchange.serve(link, replica, () => this.#mayRead(replica, peer, proof));
      if (theirs === null) return;
      await this.#exchange.fetch(link, replica, peer, theirs);
      send(link, { type: 'done' });
    } finally {
      inside.release();
    }
  }

  async #takePush(link: LinkStream, replica: Replica, peer: Aid, entries: readonly Uint8Array[]): Promise<void> {
    const holder = pairHolder(link, replica.role(peer) !== null);
    if (!this.#pushed.take(holder, Math.max(1, entries.length))) return send(link, { type: 'taken', complete: false });
    const { waiting } = await this.#exchange.takeIn(replica, entries, peer);
    send(link, { type: 'taken', complete: !waiting });
  }

  /** Members read the group, and whom it invites or who proves the join secret. */
  #mayRead(replica: Replica, peer: Aid, proof?: Uint8Array): boolean {
    if (replica.role(peer) !== null) return true;
    const view = replica.control.everything();
    if (replica.control.isInvited(view, peer)) return true;
    if (proof === undefined || replica.control.isBanned(view, peer)) return false;
    return replica.control.joinKeys(view).some((key) => provesSecret(key, replica.groupId, peer, proof));
  }

  /** Who was removed is shown the entry that did it; who never was here learns nothing. */
  #refuse(link: LinkStream, replica: Replica | null, peer: Aid): void {
    send(link, { type: 'refuse', entry: replica?.removalEntry(peer) ?? undefined });
  }
}

/** True where an agent may remove the one whose replica it is: nobody removes the creator, and only the creator an admin. */
function mayRemove(replica: Replica, author: Aid): boolean {
  const own = replica.role(replica.aid);
  const role = replica.role(author);
  return own !== 'creator' && (role === 'creator' || (role === 'admin' && own !== 'admin'));
}
