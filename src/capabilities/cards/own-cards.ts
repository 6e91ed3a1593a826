/**
 * The cards of local agents: signed, stored as objects and named by the profile. A new key of an agent signs its card
 * again, because signatures of the old key become invalid.
 */
import { type CardService, rewriteAddresses, type SkippedInterface } from '../../foundation/cards/addresses.ts';
import { canonicalJson } from '../../foundation/cards/canonical-json.ts';
import { badCard, type Card, type CardKind, cardKind, MAX_CARD_BYTES, readCard } from '../../foundation/cards/card.ts';
import { type CardSigner, signCard, unsigned } from '../../foundation/cards/signature.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { KeyedMutex } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { type CardStore, type StoredCard, UNSIGNED } from '../../foundation/store/cards.ts';

/** The object name of a card. */
const OBJECT_NAME = 'agent-card.json';

interface Published {
  readonly seq: number;
  readonly replicas: number;
}

export interface OwnCardsDependencies extends NodeParts {
  readonly store: CardStore;
  /** The signer of a local agent; null if it is not registered here. */
  readonly identity: (aid: Aid) => CardSigner | null;
  /** The service of a local agent; null if it has none. */
  readonly serviceOf: (aid: Aid) => CardService | null;
  readonly objects: {
    store(aid: Aid, source: Iterable<Uint8Array>, name: string): Promise<{ readonly objectId: string }>;
    /** Null if the agent has no object with this ID. */
    stat(aid: Aid, objectId: string): object | null;
    delete(aid: Aid, objectId: string): void;
  };
  /** Sets or removes the card's object ID in the agent's profile. */
  readonly setProfileCard: (aid: Aid, objectId: string | null) => Promise<Published>;
}

/** A signed card of a local agent. */
export interface OwnCard {
  readonly card: Card;
  readonly kind: CardKind;
  readonly objectId: string;
  /** Unix seconds. */
  readonly signedAt: number;
}

/** A card that was published just now. */
export interface PublishedCard extends OwnCard, Published {
  /** Interfaces of the card that do not belong to the agent's service and were removed. */
  readonly left: readonly SkippedInterface[];
}

/** A signed card as text. */
interface SignedCard {
  readonly text: string;
  readonly signedAt: number;
  readonly left: readonly SkippedInterface[];
}

/** @throws SvcError `bad_card` if a stored card is invalid */
function toOwnCard({ card: text, objectId, signedAt }: StoredCard): OwnCard {
  const card = readCard(Buffer.from(text));
  return { card, kind: cardKind(card) ?? 'a2a', objectId, signedAt };
}

function noCard(aid: Aid): SvcError {
  return new SvcError('not_found', {
    thing: 'card',
    message: 'This agent has no card. Publish its service\'s card with "svc publish <service> --from <url>".',
    details: { aid },
  });
}

export class OwnCards implements Component {
  readonly #deps: OwnCardsDependencies;
  /** One change of an agent's card at a time. */
  readonly #turns = new KeyedMutex();

  constructor(dependencies: OwnCardsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('cards') };
  }

  /** The card of an agent; null if it has none. */
  find(aid: Aid): OwnCard | null {
    const stored = this.#deps.store.own(aid);
    return stored === null ? null : toOwnCard(stored);
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid): OwnCard {
    const card = this.find(aid);
    if (card === null) throw noCard(aid);
    return card;
  }

  /**
   * Publishes a card: replaces the service's addresses with the agent's, removes interfaces at other ports of the same
   * machine, signs the card, stores it and names it in the profile.
   * @throws SvcError `bad_card` (400), `not_found`, `files_root_required`, `quota_exceeded`, `not_writable`, and errors
   *   of publishing
   */
  async set(aid: Aid, card: Card): Promise<PublishedCard> {
    return this.#turns.run(aid, () => this.#renew(aid, card));
  }

  async #renew(aid: Aid, card: Card): Promise<PublishedCard> {
    const signed = this.#sign(aid, card);
    return { ...(await this.#keep(aid, signed)), ...(await this.#name(aid)), left: signed.left };
  }

  /**
   * Deletes the card of an agent.
   * @throws SvcError `not_found`, and errors of publishing
   */
  async delete(aid: Aid): Promise<void> {
    await this.#turns.run(aid, async () => {
      const { objectId } = this.get(aid);
      this.#deps.store.deleteOwn(aid);
      this.#discard(aid, objectId);
      await this.#deps.setProfileCard(aid, null);
    });
  }

  /** Finishes cards of moved agents and signatures that were pending when the daemon stopped. */
  async start(): Promise<void> {
    for (const aid of this.#deps.store.owners()) detach(this.complete(aid));
  }

  /** Waits until no card is being signed or stored. */
  async stop(): Promise<void> {
    await this.#turns.idle();
  }

  /** Completes the card of a moved agent: signs it if necessary, and stores its object. Never rejects. */
  async complete(aid: Aid): Promise<void> {
    try {
      await this.#turns.run(aid, async () => {
        const { store, objects } = this.#deps;
        const stored = store.own(aid);
        if (stored === null) return;
        const { card, objectId, signedAt } = stored;
        if (signedAt === UNSIGNED) await this.#renew(aid, toOwnCard(stored).card);
        else if (objects.stat(aid, objectId) === null) await objects.store(aid, [Buffer.from(card)], OBJECT_NAME);
      });
    } catch (error) {
      this.#deps.log.warn({ aid, error }, 'failed to publish the card of an agent');
    }
  }

  /** Signs the card of an agent with its new key. Never rejects. */
  async resign(aid: Aid): Promise<void> {
    try {
      const card = this.find(aid);
      if (card !== null) await this.set(aid, card.card);
    } catch (error) {
      this.#deps.log.warn({ aid, error }, 'failed to sign a card with the new key of its agent');
    }
  }

  /** @throws SvcError `bad_card` (400), `not_found` */
  #sign(aid: Aid, card: Card): SignedCard {
    const signer = this.#deps.identity(aid);
    if (signer === null) throw noSuchAgent(aid);
    const signedAt = unixSeconds(this.#deps.clock);
    try {
      if (cardKind(card) === null)
        throw badCard('not_a_card', 'it is neither an A2A agent card nor an MCP server card');
      const place = { aid, service: this.#deps.serviceOf(aid), to: `svc://${aid}` };
      const { card: rewritten, skipped: left } = rewriteAddresses(unsigned(card), place);
      const text = canonicalJson(signCard(rewritten, signer, signedAt));
      if (Buffer.byteLength(text) > MAX_CARD_BYTES)
        throw badCard('too_large', `it is larger than ${MAX_CARD_BYTES} bytes`);
      return { text, signedAt, left };
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'bad_card') throw error;
      const { message, details = {} } = error;
      throw new SvcError('bad_card', { message, details, status: 400 });
    }
  }

  /** Replaces the stored card with a signed one. */
  async #keep(aid: Aid, { text, signedAt }: SignedCard): Promise<OwnCard> {
    const { store, objects } = this.#deps;
    const before = store.own(aid);
    const { objectId } = await objects.store(aid, [Buffer.from(text)], OBJECT_NAME);
    const stored = { card: text, objectId, signedAt };
    store.putOwn(aid, stored);
    if (before !== null && before.objectId !== objectId) this.#discard(aid, before.objectId);
    return toOwnCard(stored);
  }

  #name(aid: Aid): Promise<Published> {
    return this.#deps.setProfileCard(aid, this.#deps.store.own(aid)?.objectId ?? null);
  }

  /** Deletes the object of a replaced card. The owner may have deleted it already. */
  #discard(aid: Aid, objectId: string): void {
    try {
      this.#deps.objects.delete(aid, objectId);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
    }
  }
}
