/** Export and import of an agent's signed card. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../foundation/cards/canonical-json.ts';
import { type Card, cardKind, readCard } from '../../foundation/cards/card.ts';
import { type CardCheck, verifyCard } from '../../foundation/cards/signature.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import { badDocument } from '../../foundation/moving/document-fields.ts';
import { type CardStore, UNSIGNED } from '../../foundation/store/cards.ts';

export function exportCard(store: CardStore, aid: Aid): string | undefined {
  return store.own(aid)?.card;
}

export interface CardImport {
  readonly store: CardStore;
  /** Unix seconds. */
  readonly now: number;
  readonly verifyDelegation: CardCheck['verifyDelegation'];
}

/**
 * Validates an imported card. A card that an earlier key of the agent signed is accepted and will be signed again.
 * @returns a function that stores the card; its object is stored after the agent is registered
 * @throws SvcError `bad_file`
 */
export function importCard(home: CardImport, aid: Aid, text: string | undefined, delegation: Delegation): () => void {
  if (text === undefined) return () => {};
  const card = readText(text);
  const signedAt = signedAtOf(card, home, aid, delegation);
  const objectId = createHash('sha256').update(text).digest('hex');
  return () => home.store.putOwn(aid, { card: text, objectId, signedAt });
}

function readText(text: string): Card {
  try {
    const card = readCard(Buffer.from(text));
    if (cardKind(card) !== null && canonicalJson(card) === text) return card;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
  }
  throw badDocument('/card', 'is not a card in canonical JSON');
}

/** The reasons for which a signature is outdated, not forged. */
const OUTDATED_REASONS = new Set<unknown>(['expired', 'replayed']);

function signedAtOf(card: Card, { now, verifyDelegation }: CardImport, aid: Aid, delegation: Delegation): number {
  try {
    const check = { aid, now, newestDelegation: delegation.issuedAt, newestCard: 0, verifyDelegation };
    return verifyCard(card, check).signedAt;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (OUTDATED_REASONS.has(error.details?.['reason'])) return UNSIGNED;
    throw badDocument('/card', 'is not signed by the agent');
  }
}
