/** The profile card: what an agent says of itself, custom record 0x02. */
import { RECORD_TTL_S } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { parseMeta } from '../../foundation/records/fields.ts';
import { decodeProfilePayload, EMPTY_PROFILE, encodeProfilePayload } from '../../foundation/records/payloads.ts';
import { MAX_CUSTOM_PAYLOAD_BYTES, RECORD } from '../../foundation/records/types.ts';
import type { Publication } from '../../foundation/store/publications.ts';
import { metaText } from './service-cards.ts';

/** A card; what is left out says nothing. */
export interface ProfileCard {
  readonly name?: string;
  readonly brief?: string;
  readonly protocols?: readonly string[];
  /** At most 3. */
  readonly skills?: readonly string[];
  readonly modalities?: readonly string[];
  readonly cardHash?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** @throws SvcError `too_large`, `invalid_request` */
export function profilePublication(card: ProfileCard): Publication {
  const payload = encodeProfilePayload({ ...EMPTY_PROFILE, ...card, meta: metaText(card.meta ?? null) });
  if (payload.length > MAX_CUSTOM_PAYLOAD_BYTES)
    throw new SvcError('too_large', {
      message: `The profile card takes ${payload.length} bytes; the limit is ${MAX_CUSTOM_PAYLOAD_BYTES}.`,
      details: { size: payload.length, limit: MAX_CUSTOM_PAYLOAD_BYTES },
    });
  return { type: RECORD.profile, name: '', payload, ttl: RECORD_TTL_S };
}

/** The card that a payload holds; null where it holds something else, or says nothing. */
export function readProfile(payload: Uint8Array): ProfileCard | null {
  const card = decodeProfilePayload(payload);
  if (card === null) return null;
  const meta = parseMeta(card.meta) ?? {};
  const said: ProfileCard = {
    ...(card.name === '' ? {} : { name: card.name }),
    ...(card.brief === '' ? {} : { brief: card.brief }),
    ...(card.protocols.length === 0 ? {} : { protocols: card.protocols }),
    ...(card.skills.length === 0 ? {} : { skills: card.skills }),
    ...(card.modalities.length === 0 ? {} : { modalities: card.modalities }),
    ...(card.cardHash === '' ? {} : { cardHash: card.cardHash }),
    ...(Object.keys(meta).length === 0 ? {} : { meta }),
  };
  return Object.keys(said).length === 0 ? null : said;
}
