/**
 * The cards of agents here, as their owners took them over: signed, kept as objects, named by the profile. They are
 * signed anew when an agent gets another key, so that what the old one signed is good no longer.
 */
import { type CardService, rewriteAddresses, type SkippedInterface } from '../../foundation/cards/addresses.ts';
import { badCard } from '../../foundation/cards/bad-card.ts';
import { canonicalJson } from '../../foundation/cards/canonical-json.ts';
import { type Card, type CardKind, cardKind, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { type CardSigner, signCard, unsigned } from '../../foundation/cards/signature.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { KeyedMutex } from '../../foundation/keyed-mutex.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { type CardStore, type StoredCard, UNSIGNED } from '../../foundation/store/cards.ts';

/** The name of the object that a card is. */
const OBJECT_NAME = 'agent-card.json';

interface Published {
  readonly seq: number;
  readonly replicas: number;
}

export interface OwnCardsDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: CardStore;
  /** An agent here with what it signs; null where it is not here. */
  readonly identity: (aid: Aid) => CardSigner | null;
  /** What an agent here is bound to; null where nothing is. */
  readonly serviceOf: (aid: Aid) => CardService | null;
  readonly objects: {
    store(aid: Aid, source: Iterable<Uint8Array>, name: string): Promise<{ readonly objectId: string }>;
    /** Null where the agent has no such object. */
    stat(aid: Aid, objectId: string): object | null;
    delete(aid: Aid, objectId: string): void;
  };
  /** Has the profile of an agent name an object, or none. */
  readonly nameCard: (aid: Aid, objectId: string | null) => Promise<Published>;
}

/** A signed card of an agent here. */
export interface OwnCard {
  readonly card: Card;
  readonly kind: CardKind;
  readonly objectId: string;
  /** Unix seconds. */
  readonly signedAt: number;
}

/** A card that was taken over just now. */
export interface TakenCard extends OwnCard, Published {
  /** Interfaces of it that are not the service of the agent. */
  readonly left: readonly SkippedInterface[];
}

/** A card as it is kept. */
interface SignedCard {
  readonly text: string;
  readonly signedAt: number;
  readonly left: readonly SkippedInterface[];
}

/** @throws SvcError `bad_card` where a stored card is none */
function shownCard({ card: text, objectId, signedAt }: StoredCard): OwnCard {
  const card = readCard(Buffer.from(text));
  return { card, kind: cardKind(card) ?? 'a2a', objectId, signedAt };
}

function noCard(aid: Aid): SvcError {
  return new SvcError('not_found', {
    thing: 'card',
    message: 'This agent has no card: "svc publish <service> --from <url>" takes over that of its service.',
    details: { aid },
  });
}

export class OwnCards implements Component {
  readonly #deps: OwnCardsDependencies;
  /** One change at a time of the card of one agent. */
  readonly #turns = new KeyedMutex();

  constructor(dependencies: OwnCardsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('cards') };
  }

  /** The card of an agent; null where it has none. */
  find(aid: Aid): OwnCard | null {
    const stored = this.#deps.store.own(aid);
    return stored === null ? null : shownCard(stored);
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid): OwnCard {
    const card = this.find(aid);
    if (card === null) throw noCard(aid);
    return card;
  }

  /**
   * Takes over a card: its own addresses become those of the agent, wherever it is, and it is signed, kept and named.
   * Interfaces at other ports of the service's machine are left out.
   * @throws SvcError `bad_card` (400), `not_found`, `files_root_required`, `quota_exceeded`, `not_writable`, and what publishing gives
   */
  async set(aid: Aid, card: Card): Promise<TakenCard> {
    return this.#turns.run(aid, () => this.#renew(aid, card));
  }

  async #renew(aid: Aid, card: Card): Promise<TakenCard> {
    const signed = this.#sign(aid, card);
    return { ...(await this.#keep(aid, signed)), ...(await this.#name(aid)), left: signed.left };
  }

  /**
   * Lets go of the card of an agent.
   * @throws SvcError `not_found`, and what publishing gives
   */
  async delete(aid: Aid): Promise<void> {
    await this.#turns.run(aid, async () => {
      const { objectId } = this.get(aid);
      this.#deps.store.deleteOwn(aid);
      this.#discard(aid, objectId);
      await this.#deps.nameCard(aid, null);
    });
  }

  /** Sees to cards whose agents moved here, or were to be signed, when the daemon ended. */
  async start(): Promise<void> {
    for (const aid of this.#deps.store.owners()) detach(this.settle(aid));
  }

  async stop(): Promise<void> {}

  /**
   * Has the card of an agent that moved here be an object here, signed with the key that the agent has. Never rejects.
   */
  async settle(aid: Aid): Promise<void> {
    try {
      await this.#turns.run(aid, async () => {
        const { store, objects } = this.#deps;
        const stored = store.own(aid);
        if (stored === null) return;
        const { card, objectId, signedAt } = stored;
        if (signedAt === UNSIGNED) await this.#renew(aid, shownCard(stored).card);
        else if (objects.stat(aid, objectId) === null) await objects.store(aid, [Buffer.from(card)], OBJECT_NAME);
      });
    } catch (error) {
      this.#deps.log.warn({ aid, error }, 'the card of an agent cannot be had by others');
    }
  }

  /** Signs the card of an agent anew, which has another key now. Never rejects. */
  async resign(aid: Aid): Promise<void> {
    try {
      const card = this.find(aid);
      if (card !== null) await this.set(aid, card.card);
    } catch (error) {
      this.#deps.log.warn({ aid, error }, 'a card could not be signed with the new key of its agent');
    }
  }

  /** @throws SvcError `bad_card` (400), `not_found` */
  #sign(aid: Aid, card: Card): SignedCard {
    const signer = this.#deps.identity(aid);
    if (signer === null) throw noSuchAgent(aid);
    const signedAt = unixSeconds(this.#deps.clock);
    try {
      if (cardKind(card) === null)
        throw badCard('not_a_card', 'it is neither an agent card of A2A nor one of an MCP server');
      const place = { aid, service: this.#deps.serviceOf(aid), to: `svc://${aid}` };
      const { card: led, left } = rewriteAddresses(unsigned(card), place);
      const text = canonicalJson(signCard(led, signer, signedAt));
      if (Buffer.byteLength(text) > MAX_CARD_BYTES) throw badCard('too_large', `it is over ${MAX_CARD_BYTES} bytes`);
      return { text, signedAt, left };
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'bad_card') throw error;
      const { message, details = {} } = error;
      throw new SvcError('bad_card', { message, details, status: 400 });
    }
  }

  /** Puts a signed card in the place of the one before. */
  async #keep(aid: Aid, { text, signedAt }: SignedCard): Promise<OwnCard> {
    const { store, objects } = this.#deps;
    const before = store.own(aid);
    const { objectId } = await objects.store(aid, [Buffer.from(text)], OBJECT_NAME);
    const stored = { card: text, objectId, signedAt };
    store.putOwn(aid, stored);
    if (before !== null && before.objectId !== objectId) this.#discard(aid, before.objectId);
    return shownCard(stored);
  }

  #name(aid: Aid): Promise<Published> {
    return this.#deps.nameCard(aid, this.#deps.store.own(aid)?.objectId ?? null);
  }

  /** The object of a card before; that its owner has deleted it is no trouble. */
  #discard(aid: Aid, objectId: string): void {
    try {
      this.#deps.objects.delete(aid, objectId);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
    }
  }
}
