/** Turns what users say of their services and themselves into publications, checked against the record limits. */

import { isServiceName } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import { isObject, parseJson } from '../../foundation/json.ts';
import { decodeServicePayload, encodeServicePayload } from '../../foundation/records/payloads.ts';
import { payloadBudget } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationRow } from '../../foundation/store/publications.ts';

/** What an agent offers, under one or several names. */
export interface ServiceOffer {
  readonly services: readonly string[];
  readonly name: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly brief: string;
  /** Null where there is none. */
  readonly meta: Readonly<Record<string, unknown>> | null;
  /** Seconds. */
  readonly ttl: number;
}

/** @throws SvcError `bad_service_name` */
export function checkServiceName(name: string): string {
  if (!isServiceName(name)) throw new SvcError('bad_service_name', { details: { service: name.slice(0, 200) } });
  return name;
}

/** The JSON text of a free-form object; empty where it says nothing. */
export function metaText(meta: Readonly<Record<string, unknown>> | null): string {
  return meta === null || Object.keys(meta).length === 0 ? '' : JSON.stringify(meta);
}

/**
 * One publication per service name.
 * @throws SvcError `bad_service_name`, `too_large`, `invalid_request`
 */
export function servicePublications(offer: ServiceOffer, delegation: Delegation): Publication[] {
  const { name, protocols, tags, brief, ttl } = offer;
  const budget = payloadBudget(RECORD.service, delegation);
  return [...new Set(offer.services)].map((service) => {
    const meta = metaText(offer.meta);
    const payload = encodeServicePayload({ service: checkServiceName(service), name, protocols, tags, brief, meta });
    if (payload.length > budget)
      throw new SvcError('too_large', {
        message: `The service "${service}" takes ${payload.length} bytes; the limit is ${budget}. Shorten its brief, meta, protocols or tags.`,
        details: { service, size: payload.length, limit: budget },
      });
    return { type: RECORD.service, name: service, payload, ttl };
  });
}

/** A service that an agent offers, as it was said. */
export interface OfferedService extends Omit<ServiceOffer, 'services'> {
  readonly service: string;
  /** Nodes that keep it; 0 while none does. */
  readonly replicas: number;
  /** Unix milliseconds; null where it has not come to the network, or is there no more. */
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
