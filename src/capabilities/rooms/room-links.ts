/** Talks about rooms with other nodes: calls them, and answers who may ask. */
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { Listeners } from '../../foundation/listeners.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { wakingClock } from '../../foundation/stall.ts';
import { letGo } from '../../network/links/source.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { decodeEntry, provesSecret, verifyEntry } from './entry.ts';
import { RoomExchange, type RoomExchangeDependencies } from './exchange.ts';
import { markRemoved } from './notices.ts';
import type { Replica } from './replica.ts';
import type { Replicas } from './replicas.ts';
import { TalkSlots } from './talk-slots.ts';
import type { RoomsDependencies } from './types.ts';
import { send } from './wire.ts';

/** Milliseconds to reach a member's node. */
const OPEN_TIMEOUT_MS = 8000;
/** Milliseconds for one talk, however much there is to say. */
const TALK_TIMEOUT_MS = 120_000;
/** Talks that one agent may begin with one other per second, and at once; entries that it may push to it. */
const TALKS_PER_S = 100;
const TALK_BURST = 500;
const PUSHED_PER_S = 200;
const PUSHED_BURST = 5000;
const MAX_REMEMBERED = 8192;

interface RoomLinksDependencies extends RoomExchangeDependencies, Pick<RoomsDependencies, 'links' | 'log' | 'events'> {
  readonly replicas: Pick<Replicas, 'served' | 'proof'>;
}

export class RoomLinks {
  /** Told of a member that has called: it is there. */
  readonly met: Listeners<[peer: Aid]> = new Listeners();
  readonly #deps: RoomLinksDependencies;
  readonly #exchange: RoomExchange;
  readonly #stop = new AbortController();
  readonly #talks: RateLimiter;
  readonly #pushed: RateLimiter;
  readonly #slots = new TalkSlots();

  /** Takes the links of purpose `room`. */
  constructor(dependencies: RoomLinksDependencies) {
    this.#deps = dependencies;
    this.#exchange = new RoomExchange(dependencies, this.#stop.signal);
    const common = { maxKeys: MAX_REMEMBERED };
    this.#talks = new RateLimiter({ perSecond: TALKS_PER_S, burst: TALK_BURST, ...common }, dependencies);
    this.#pushed = new RateLimiter({ perSecond: PUSHED_PER_S, burst: PUSHED_BURST, ...common }, dependencies);
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
    const limit = wakingClock(clock).after(TALK_TIMEOUT_MS, () => link.destroy());
    try {
      const said = await talk(link);
      link.end();
      letGo(link, clock);
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
    if (!this.#talks.take(pairOf(link))) return void link.destroy();
    this.#slots.knock(link);
    try {
      await this.#talk(link, (open) => this.#converse(open));
    } catch (error) {
      this.#deps.log.debug({ caller: link.caller, error }, 'a talk about a room failed');
    } finally {
      this.#slots.leave(link);
    }
  }

  async #converse(link: LinkStream): Promise<void> {
    const peer = link.caller;
    const first = await this.#exchange.next(link);
    if (first.type !== 'hello' && first.type !== 'push') throw new SvcError('protocol_error');
    const replica = this.#deps.replicas.served(link.called, first.groupId);
    const proof = first.type === 'hello' ? first.proof : undefined;
    if (replica === null || !this.#mayRead(replica, peer, proof)) return this.#refuse(link, replica, peer);
    if (!this.#slots.enter(link)) throw new SvcError('rate_limited');
    this.met.tell(peer);
    if (first.type === 'push') return this.#takePush(link, replica, peer, first.entries);
    send(link, { type: 'have', have: this.#exchange.have(replica) });
    const theirs = await this.#exchange.serve(link, replica, () => this.#mayRead(replica, peer, proof));
    if (theirs === null) return;
    await this.#exchange.fetch(link, replica, peer, theirs);
    send(link, { type: 'done' });
  }

  async #takePush(link: LinkStream, replica: Replica, peer: Aid, entries: readonly Uint8Array[]): Promise<void> {
    if (!this.#pushed.take(pairOf(link), Math.max(1, entries.length)))
      return send(link, { type: 'taken', complete: false });
    const { waiting } = await this.#exchange.takeIn(replica, entries, peer);
    send(link, { type: 'taken', complete: !waiting });
  }

  /** Members read the room, and whom it invites or who proves the join secret. */
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

/** Who calls whom: limits of one pair leave the others on the same daemons alone. */
function pairOf({ caller, called }: LinkStream): string {
  return `${caller} ${called}`;
}
