/** Service cards and profile cards: the descriptions that agents publish, checked against the record limits. */

import { RECORD_TTL_S } from '../../foundation/domain/directory.ts';
import { isServiceName } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import { isObject, parseJson } from '../../foundation/json.ts';
import { parseMeta } from '../../foundation/records/fields.ts';
import {
  decodeProfilePayload,
  decodeServicePayload,
  EMPTY_PROFILE,
  encodeProfilePayload,
  encodeServicePayload,
} from '../../foundation/records/payloads.ts';
import { payloadBudget } from '../../foundation/records/record.ts';
import { MAX_CUSTOM_PAYLOAD_BYTES, RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationRow } from '../../foundation/store/publications.ts';

/** A service of an agent, under one or several names. */
export interface ServiceOffer {
  readonly services: readonly string[];
  readonly name: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly brief: string;
  /** Null if there is none. */
  readonly meta: Readonly<Record<string, unknown>> | null;
  /** Seconds. */
  readonly ttl: number;
  /** Seconds within which the agent usually starts when it is called. Undefined: its profile says it, or it runs. */
  readonly wakesWithinS?: number | undefined;
}

/** @throws SvcError `bad_service_name` */
export function checkServiceName(name: string): string {
  if (!isServiceName(name)) throw new SvcError('bad_service_name', { details: { service: name.slice(0, 200) } });
  return name;
}

/** The JSON text of a free-form object; empty for an empty object. */
export function metaText(meta: Readonly<Record<string, unknown>> | null): string {
  return meta === null || Object.keys(meta).length === 0 ? '' : JSON.stringify(meta);
}

/**
 * One publication per service name.
 * @throws SvcError `bad_service_name`, `too_large`, `invalid_request`
 */
export function servicePublications(offer: ServiceOffer, delegation: Delegation): Publication[] {
  const { name, protocols, tags, brief, ttl, wakesWithinS } = offer;
  const budget = payloadBudget(RECORD.service, delegation);
  return [...new Set(offer.services)].map((service) => {
    const meta = metaText(offer.meta);
    const payload = encodeServicePayload({
      service: checkServiceName(service),
      name,
      protocols,
      tags,
      brief,
      meta,
      wakesWithinS,
    });
    if (payload.length > budget)
      throw new SvcError('too_large', {
        message: `The service "${service}" takes ${payload.length} bytes; the limit is ${budget}. Shorten its brief, meta, protocols or tags.`,
        details: { service, size: payload.length, limit: budget },
      });
    return { type: RECORD.service, name: service, payload, ttl };
  });
}

/** A service that an agent offers. */
export interface OfferedService extends Omit<ServiceOffer, 'services'> {
  readonly service: string;
  /** Nodes that store it. */
  readonly replicas: number;
  /** Unix milliseconds; null if it is not published, or has expired. */
  readonly expiresAt: number | null;
}

/** The services among publications, by name. @param now Unix milliseconds */
export function offeredServices(rows: readonly PublicationRow[], now: number): OfferedService[] {
  return rows
    .filter(({ type }) => type === RECORD.service)
    .flatMap(({ payload, ttl, publishedAt, replicas }) => {
      const card = decodeServicePayload(payload);
      if (card === null) return [];
      const end = publishedAt === null ? null : publishedAt + ttl * 1000;
      const meta = card.meta === '' ? null : objectOf(parseJson(card.meta));
      return [{ ...card, meta, ttl, replicas, expiresAt: end !== null && end > now ? end : null }];
    })
    .sort((a, b) => (a.service < b.service ? -1 : 1));
}

function objectOf(value: unknown): ServiceOffer['meta'] {
  return isObject(value) ? value : null;
}

/** A card. All members are optional. */
export interface ProfileCard {
  readonly name?: string;
  readonly brief?: string;
  readonly protocols?: readonly string[];
  /** At most 3. */
  readonly skills?: readonly string[];
  readonly modalities?: readonly string[];
  readonly cardHash?: string;
  /** As in `ServiceOffer`. */
  readonly wakesWithinS?: number | undefined;
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

/** The card in a payload; null if it is invalid or empty. */
export function readProfile(payload: Uint8Array): ProfileCard | null {
  const card = decodeProfilePayload(payload);
  if (card === null) return null;
  const meta = parseMeta(card.meta) ?? {};
  const filled: ProfileCard = {
    ...(card.name === '' ? {} : { name: card.name }),
    ...(card.brief === '' ? {} : { brief: card.brief }),
    ...(card.protocols.length === 0 ? {} : { protocols: card.protocols }),
    ...(card.skills.length === 0 ? {} : { skills: card.skills }),
    ...(card.modalities.length === 0 ? {} : { modalities: card.modalities }),
    ...(card.cardHash === '' ? {} : { cardHash: card.cardHash }),
    ...(card.wakesWithinS === undefined ? {} : { wakesWithinS: card.wakesWithinS }),
    ...(Object.keys(meta).length === 0 ? {} : { meta }),
  };
  return Object.keys(filled).length === 0 ? null : filled;
}
