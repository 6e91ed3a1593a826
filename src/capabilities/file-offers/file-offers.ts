/**
 * Files that one agent offers to another: an object of the sender's, and a sealed note that says what it is. The note
 * waits where the recipient is away; the bytes are read from the sender when the recipient takes them. See docs/files.md.
 */
import type { Clock } from '../../foundation/clock.ts';
import {
  FILE_OFFER_LIFE_MS,
  type FileOfferDirection,
  MAX_OFFERED_BYTES,
  MAX_OPEN_OFFERS,
  MAX_OPEN_OFFERS_MADE,
  MAX_OPEN_OFFERS_OF_STRANGERS,
  MAX_OPEN_OFFERS_PER_SENDER,
} from '../../foundation/domain/file-offers.ts';
import { NOTE_TYPE, type NoteOutcome } from '../../foundation/domain/notes.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { causeOf, type EventSink } from '../../foundation/events.ts';
import { receivedName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { FileOfferRow, FileOfferStore } from '../../foundation/store/file-offers.ts';
import { OfferNewsTeller } from './news-teller.ts';
import type { OfferedObjects } from './offered.ts';
import type { FileOffer, OfferNote, OfferNotes, OfferObjects, OfferRequest } from './types.ts';
import { decodeNews, decodeOffer, encodeOffer, type OfferEnd } from './wire.ts';

/** Milliseconds between two looks at what has expired and at who is to be told something. */
const OFFERS_TICK_MS = 15_000;
/** Offers that expire in one go. */
const BATCH = 64;

export interface FileOffersDependencies {
  readonly store: FileOfferStore;
  readonly notes: OfferNotes;
  readonly objects: OfferObjects;
  readonly offered: Pick<OfferedObjects, 'readBytes' | 'forget'>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  /** True where an agent is registered here. */
  readonly isHere: (aid: Aid) => boolean;
  /** True where the owner of an agent has shut another one out, by the access list or by chat. */
  readonly isBlocked: (aid: Aid, peer: Aid) => boolean;
  /** True where the owner of an agent has labelled another one, or let it in by name. */
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
  /** Has those who read objects of an agent looked at again. */
  readonly recheck: (aid: Aid) => void;
  /** An id that nothing else has, in hex. */
  readonly newId: () => string;
}

export class FileOffers implements Component {
  readonly #deps: FileOffersDependencies;
  readonly #teller: OfferNewsTeller;
  /** Agents here whose offers have ended since the last look. */
  readonly #ended = new Set<Aid>();
  #looks: RepeatingTask | null = null;
  #telling: RepeatingTask | null = null;

  /** Takes the notes about files. */
  constructor(dependencies: FileOffersDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('files') };
    this.#teller = new OfferNewsTeller(this.#deps);
    dependencies.notes.claim(NOTE_TYPE.fileOffer, (recipient, note) => this.#offered(recipient, note));
    dependencies.notes.claim(NOTE_TYPE.fileNews, (recipient, note) => this.#told(recipient, note));
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'offers of files could not be looked through');
    const options = { periodMs: OFFERS_TICK_MS, firstMs: 0, onError };
    this.#looks = every(clock, options, () => {
      this.#expire();
      this.#clearUp();
    });
    this.#telling = every(clock, options, () => this.#teller.tellAll());
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
    this.#telling?.stop();
    await this.#telling?.idle();
  }

  /**
   * Offers an object of an agent here to another agent. From now on that one may read it, whatever the access list says
   * of agents without a name.
   * @returns the offer, and whether the recipient's node has it already
   * @throws SvcError `not_found`, `self`, `access_denied` where the recipient is shut out, `too_large`, `quota_exceeded`,
   *   `invalid_request`, and what sending a note gives: then nothing is offered
   */
  async offer(aid: Aid, request: OfferRequest): Promise<{ readonly offer: FileOffer; readonly delivered: boolean }> {
    const { store, notes, clock, newId } = this.#deps;
    const { recipient, objectId, message = '', temporary } = request;
    const object = this.#offerable(aid, request);
    const name = receivedName(request.name ?? object.name);
    const file = { id: newId(), objectId, size: object.size, name, message };
    const at = clock.now();
    const times = { at, expiresAt: at + FILE_OFFER_LIFE_MS };
    // Before the note goes out: whoever has it may come for the file.
    if (!store.add({ ...file, ...times, aid, peer: recipient, direction: 'out', temporary })) throw noSuchAgent(aid);
    try {
      const { delivered } = await notes.send(aid, recipient, NOTE_TYPE.fileOffer, encodeOffer(file));
      return { offer: this.get(aid, file.id), delivered };
    } catch (error) {
      // Only of this one nobody knows whether the recipient has the note all the same.
      const tellAt = error instanceof SvcError && error.code === 'timeout' ? clock.now() : null;
      if (this.#settle(aid, file.id, 'withdrawn', tellAt)) this.#over(aid);
      throw error;
    }
  }

  #offerable(aid: Aid, { recipient, objectId, message = '' }: OfferRequest) {
    const { store, objects, isHere, isBlocked } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    if (recipient === aid) throw new SvcError('self');
    if (isBlocked(aid, recipient))
      throw new SvcError('access_denied', { message: 'You have shut this agent out: it could not take the file.' });
    if (!message.isWellFormed())
      throw new SvcError('invalid_request', { message: 'The message is not well-formed Unicode.' });
    const object = objects.stat(aid, objectId);
    if (object === null)
      throw new SvcError('not_found', { thing: 'object', message: 'This agent has no such object.' });
    if (object.size > MAX_OFFERED_BYTES) throw new SvcError('too_large');
    const made = [...store.openByPeer(aid, 'out').values()].reduce((sum, n) => sum + n, 0);
    if (made >= MAX_OPEN_OFFERS_MADE)
      throw new SvcError('quota_exceeded', {
        message: `An agent has at most ${MAX_OPEN_OFFERS_MADE} open offers: withdraw some with "svc files withdraw".`,
      });
    return object;
  }

  /**
   * The offers of an agent here, newest first.
   * @throws SvcError `not_found`
   */
  list(aid: Aid, direction: FileOfferDirection | undefined, onlyOpen: boolean): readonly FileOffer[] {
    const { store, isHere } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    return store.list(aid, direction, onlyOpen).map((row) => this.#view(row));
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid, id: string): FileOffer {
    return this.#view(this.#row(aid, id));
  }

  /**
   * An offer to an agent here that it can take.
   * @throws SvcError `not_found`, `wrong_state`
   */
  takeable(aid: Aid, id: string): FileOffer {
    const row = this.#row(aid, id);
    if (row.direction === 'out') throw overAlready('It is an offer of your own.');
    if (row.state !== 'open') throw overAlready(`It is ${row.state} already.`);
    if (row.expiresAt <= this.#deps.clock.now()) throw overAlready('It has expired.');
    return this.#view(row);
  }

  /** Says that the file of an offer is here, whole. @throws SvcError `not_found`, `wrong_state` */
  taken(aid: Aid, id: string): FileOffer {
    this.takeable(aid, id);
    return this.#end(aid, id, 'taken');
  }

  /** Refuses an offer, and says so to its sender. @throws SvcError `not_found`, `wrong_state` */
  decline(aid: Aid, id: string): FileOffer {
    this.takeable(aid, id);
    return this.#end(aid, id, 'declined');
  }

  /** Takes an offer back: nobody reads the file because of it any more. @throws SvcError `not_found`, `wrong_state` */
  withdraw(aid: Aid, id: string): FileOffer {
    const row = this.#row(aid, id);
    if (row.direction === 'in') throw overAlready('It is not an offer of this agent: decline it.');
    if (row.state !== 'open') throw overAlready(`It is ${row.state} already.`);
    return this.#end(aid, id, 'withdrawn');
  }

  #end(aid: Aid, id: string, end: OfferEnd): FileOffer {
    if (!this.#settle(aid, id, end, this.#deps.clock.now())) throw overAlready('It is over already.');
    this.#over(aid);
    this.#telling?.soon();
    return this.get(aid, id);
  }

  /** Ends an open offer; false if it is not open. */
  #settle(aid: Aid, id: string, state: OfferEnd | 'expired', tellAt: number | null): boolean {
    const { store, clock, isKnown } = this.#deps;
    return store.settle({ aid, id, state, now: clock.now(), tellAt, isKnown });
  }

  /** An offer of an agent, or to it, is over: what that leaves behind is seen to outside of any transaction. */
  #over(aid: Aid): void {
    this.#ended.add(aid);
    this.#looks?.soon();
  }

  #expire(): void {
    const { store, clock } = this.#deps;
    for (const { aid, id } of store.expired(clock.now(), BATCH))
      if (this.#settle(aid, id, 'expired', null)) this.#ended.add(aid);
  }

  /** Cuts off who reads what is not offered any more, makes room known, and deletes what was there for offers alone. */
  #clearUp(): void {
    const { store, objects, notes, offered, recheck, log } = this.#deps;
    const ended = [...this.#ended];
    this.#ended.clear();
    for (const aid of ended) {
      recheck(aid);
      notes.roomAgain(aid);
      offered.forget(aid);
    }
    for (const { aid, objectId } of store.orphanedObjects(BATCH)) {
      store.keepObject(aid, objectId);
      try {
        objects.delete(aid, objectId);
      } catch (error) {
        log.debug({ aid, error }, 'the object of offers that are over was deleted already');
      }
    }
  }

  /** Takes in an offer of another agent; in a transaction. What is not kept is not said: nobody learns who is shut out. */
  #offered(aid: Aid, { sender, body, sentAt }: OfferNote): NoteOutcome {
    // protocol-notes.md, step 14
    const { store, events, isHere, isBlocked, isKnown } = this.#deps;
    if (!isHere(aid)) return 'full';
    const file = decodeOffer(body);
    if (file === null || sender === aid || isBlocked(aid, sender)) return 'dropped';
    if (!this.#hasRoom(aid, sender)) return 'full';
    const name = receivedName(file.name);
    const times = { at: sentAt, expiresAt: sentAt + FILE_OFFER_LIFE_MS };
    if (!store.add({ ...file, ...times, name, aid, peer: sender, direction: 'in', temporary: false })) return 'dropped';
    events.emit(aid, 'file.offered', { offer_id: file.id, from: sender }, causeOf(sender, isKnown(aid, sender)));
    return 'kept';
  }

  #hasRoom(aid: Aid, sender: Aid): boolean {
    const { store, isKnown } = this.#deps;
    const open = store.openByPeer(aid, 'in');
    if ((open.get(sender) ?? 0) >= MAX_OPEN_OFFERS_PER_SENDER) return false;
    const sum = (all: readonly (readonly [Aid, number])[]): number => all.reduce((total, [, n]) => total + n, 0);
    if (sum([...open]) >= MAX_OPEN_OFFERS) return false;
    // Strangers, who cost nothing to make, leave room for those whom the owner knows.
    if (isKnown(aid, sender)) return true;
    return sum([...open].filter(([peer]) => !isKnown(aid, peer))) < MAX_OPEN_OFFERS_OF_STRANGERS;
  }

  /** Takes in how an offer ended at the other end; in a transaction. */
  #told(aid: Aid, { sender, body }: OfferNote): NoteOutcome {
    // protocol-notes.md, step 16
    const { store, events, isKnown } = this.#deps;
    const news = decodeNews(body);
    const row = news === null ? null : store.get(aid, news.id);
    if (news === null || row === null || row.peer !== sender) return 'dropped';
    // Only who made an offer withdraws it, and only who got it takes or declines it.
    if ((news.end === 'withdrawn') !== (row.direction === 'in')) return 'dropped';
    if (!this.#settle(aid, row.id, news.end, null)) return 'dropped';
    const cause = causeOf(sender, row.direction === 'out' || isKnown(aid, sender));
    events.emit(aid, 'file.answered', { offer_id: row.id, peer: sender, state: news.end }, cause);
    this.#over(aid);
    return 'kept';
  }

  #row(aid: Aid, id: string): FileOfferRow {
    const { store, isHere } = this.#deps;
    if (!isHere(aid)) throw noSuchAgent(aid);
    const row = store.get(aid, id);
    if (row === null)
      throw new SvcError('not_found', { thing: 'offer', message: 'No such file is offered by this agent, or to it.' });
    return row;
  }

  #view(row: FileOfferRow): FileOffer {
    const { aid, peer, objectId, direction, state, size } = row;
    if (direction === 'in') return { ...row, sentBytes: null };
    return { ...row, sentBytes: state === 'taken' ? size : this.#deps.offered.readBytes(aid, peer, objectId) };
  }
}

function overAlready(message: string): SvcError {
  return new SvcError('wrong_state', { message: `${message} "svc files list --all" shows how offers stand.` });
}
