/** Nodes with file offers. The test delivers their notes. */
import assert from 'node:assert/strict';
import { FileOffers } from '../../src/capabilities/file-offers/file-offers.ts';
import { OfferAccess } from '../../src/capabilities/file-offers/offer-access.ts';
import type { OfferNote, OfferRequest } from '../../src/capabilities/file-offers/types.ts';
import { encodeOffer } from '../../src/capabilities/file-offers/wire.ts';
import { abortable } from '../../src/foundation/deadline.ts';
import { NOTE_TYPE } from '../../src/foundation/domain/notes.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { STRANGERS } from '../../src/foundation/events.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { FileOfferStore } from '../../src/foundation/store/file-offers.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import type { Purpose } from '../../src/network/links/types.ts';
import { newIdentity } from './identities.ts';
import { TestClock } from './test-clock.ts';

/** The object of a node. */
export const OBJECT = 'a1'.repeat(32);

interface Sent {
  readonly from: Aid;
  readonly to: Aid;
  readonly type: number;
  readonly body: Uint8Array;
}

/** A node with one agent. */
export class OfferNode {
  readonly clock: TestClock;
  readonly db = Store.open(':memory:', MIGRATIONS);
  readonly store = new FileOfferStore(this.db);
  readonly aid: Aid;
  readonly sent: Sent[] = [];
  readonly events: string[] = [];
  /** Events caused by strangers. */
  readonly strangeEvents: string[] = [];
  readonly objects = new Map<string, { size: number; name: string }>([[OBJECT, { size: 3, name: 'plan.pdf' }]]);
  /** Files below files_root, by path. */
  readonly files = new Map<string, { size: number; name: string; objectId: string | null }>();
  /** Files that are being hashed, by offer. Tests resolve them. */
  readonly hashing = new Map<string, PromiseWithResolvers<{ objectId: string; isNew: boolean }>>();
  /** Errors of files that were not hashed to the end, by offer. */
  readonly canceled = new Map<string, SvcError>();
  readonly blocked = new Set<Aid>();
  readonly known = new Set<Aid>();
  readonly rechecked: Aid[] = [];
  readonly offered: OfferAccess;
  readonly offers: FileOffers;
  readonly #parts: ConstructorParameters<typeof FileOffers>[0];
  readonly #takers = new Map<number, (recipient: Aid, note: OfferNote) => 'kept' | 'full' | 'dropped'>();
  /** The error of a send. */
  failure: SvcError | null = null;
  /** Notes are under way until their sender cancels them. */
  hangs = false;
  rooms = 0;
  #ids = 0;

  constructor(clock = new TestClock()) {
    this.clock = clock;
    const identity = newIdentity();
    this.aid = identity.aid;
    new AgentStore(this.db).put({ keyName: 'k', delegation: identity.delegation, serviceTcp: '', registeredAt: 0 });
    this.offered = new OfferAccess(this.store, this.clock, (_called, caller) => this.blocked.has(caller));
    this.#parts = {
      store: this.store,
      offered: this.offered,
      notes: {
        claim: (type, taker) => void this.#takers.set(type, taker),
        roomAgain: () => void this.rooms++,
        send: async (from, to, type, body, signal) => {
          if (this.hangs) await abortable(new Promise(() => {}), signal);
          if (this.failure !== null) throw this.failure;
          this.sent.push({ from, to, type, body });
          return { delivered: true };
        },
      },
      objects: {
        stat: (_aid, objectId) => this.objects.get(objectId) ?? null,
        delete: (_aid, objectId) => {
          if (!this.objects.delete(objectId)) throw new SvcError('not_found');
        },
      },
      files: {
        find: async (_aid, path) => {
          const file = this.files.get(path);
          if (file === undefined) throw new SvcError('not_found');
          return file;
        },
        begin: (_aid, id) => void this.hashing.set(id, Promise.withResolvers()),
        register: (_aid, id) => this.#hash(id),
        store: (_aid, id) => this.#hash(id),
        hashed: (_aid, id) => (this.hashing.has(id) ? 1 : null),
        finish: (_aid, id) => void this.hashing.delete(id),
        cancel: (_aid, id, error) => {
          if (!this.hashing.has(id)) return;
          this.canceled.set(id, error);
          this.hashing.get(id)?.reject(error);
          this.hashing.get(id)?.promise.catch(() => {});
          this.hashing.delete(id);
        },
      },
      events: {
        emit: (_aid, type, _data, cause) => {
          if (cause === STRANGERS) this.strangeEvents.push(type);
          return this.events.push(type);
        },
      },
      clock: this.clock,
      log: silentLog,
      random: () => 0,
      isHere: (aid) => aid === this.aid,
      isBlocked: (_aid, peer) => this.blocked.has(peer),
      isKnown: (_aid, peer) => this.known.has(peer),
      recheck: (aid) => void this.rechecked.push(aid),
      newId: () => (++this.#ids).toString(16).padStart(16, '0'),
    };
    this.offers = new FileOffers(this.#parts);
  }

  /** The offers after a restart, with the same store. */
  restarted(): FileOffers {
    return new FileOffers(this.#parts);
  }

  #hash(id: string): Promise<{ objectId: string; isNew: boolean }> {
    const made = this.hashing.get(id);
    assert.ok(made !== undefined);
    return made.promise;
  }

  /** Makes an offer for a client that receives the result. */
  async offer(aid: Aid, request: OfferRequest) {
    const { settle, ...made } = await this.offers.offer(aid, request);
    settle(true);
    return made;
  }

  take(
    sender: Aid,
    type: number,
    body: Uint8Array,
    sentAt = this.clock.now(),
  ): 'kept' | 'full' | 'dropped' | undefined {
    return this.#takers.get(type)?.(this.aid, { sender, body, sentAt });
  }

  /** Delivers all sent notes to another node. */
  deliver(to: OfferNode): void {
    for (const { from, type, body } of this.sent.splice(0)) assert.equal(to.take(from, type, body), 'kept');
  }

  /** Delivers all sent notes to another node that has already received them. */
  deliverAgain(to: OfferNode): void {
    for (const { from, type, body } of this.sent.splice(0)) assert.equal(to.take(from, type, body), 'dropped');
  }

  /** A numbered offer of a stranger. */
  strange(sender: Aid, number: number): 'kept' | 'full' | 'dropped' | undefined {
    const id = number.toString(16).padStart(16, 'f');
    return this.take(
      sender,
      NOTE_TYPE.fileOffer,
      encodeOffer({ id, objectId: OBJECT, size: 3, name: 'x', message: '' }),
    );
  }

  mayRead(caller: Aid, offerId: string | null, purpose: Purpose = 'object'): boolean {
    return this.offered.mayRead(
      { purpose, called: this.aid, caller, accessToken: undefined, nodeKey: null, source: null },
      offerId,
    );
  }
}

/** Two nodes with a common clock. */
export function offerNodes(): readonly [OfferNode, OfferNode] {
  const near = new OfferNode();
  return [near, new OfferNode(near.clock)];
}
