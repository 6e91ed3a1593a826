/** How an identity's publication stands, for lists and status pages. */
import { decodeServicePayload } from '../../foundation/records/payloads.ts';
import { RECORD, type RecordType } from '../../foundation/records/types.ts';
import type { PublicationRow, PublisherState } from '../../foundation/store/publications.ts';
import { type ProfileCard, readProfile } from './profile-cards.ts';

/** Of which types a summary says something. */
export const SUMMARIZED: readonly RecordType[] = [RECORD.endpoints, RECORD.profile, RECORD.service];

export interface PublicationSummary {
  /** Sequence number of the endpoint record published last; 0 where there was none. */
  readonly seq: number;
  /** An endpoint record was published at some time. */
  readonly everPublished: boolean;
  /** An endpoint record of ours is valid now. */
  readonly published: boolean;
  /** Unix milliseconds; null where there is none. */
  readonly lastPublishAt: number | null;
  readonly nextRepublishAt: number | null;
  readonly recordExpiresAt: number | null;
  readonly replicas: number;
  /** Service names that are on the renewal list, in alphabetical order. */
  readonly services: readonly string[];
  /** From the profile card or the first service; empty where neither says one. */
  readonly name: string;
  readonly profile: ProfileCard | null;
}

function nameOf(profile: ProfileCard | null, services: readonly PublicationRow[]): string {
  const names = services.values().map(({ payload }) => decodeServicePayload(payload)?.name ?? '');
  return profile?.name ?? names.find((name) => name !== '') ?? '';
}

/** An endpoint record of ours is valid. `now` in Unix milliseconds. */
export function isPublished({ recordExpiresAt }: Pick<PublicationSummary, 'recordExpiresAt'>, now: number): boolean {
  return recordExpiresAt !== null && recordExpiresAt > now;
}

/** Sums up what is kept of one identity. `now` in Unix milliseconds. */
export function summarize(
  publisher: PublisherState | undefined,
  rows: readonly PublicationRow[],
  now: number,
): PublicationSummary {
  const endpoints = rows.find((row) => row.type === RECORD.endpoints);
  const services = rows.filter((row) => row.type === RECORD.service).sort((a, b) => (a.name < b.name ? -1 : 1));
  const card = rows.find((row) => row.type === RECORD.profile);
  const profile = card === undefined ? null : readProfile(card.payload);
  const lastPublishAt = endpoints?.publishedAt ?? null;
  const recordExpiresAt =
    endpoints === undefined || lastPublishAt === null ? null : lastPublishAt + endpoints.ttl * 1000;
  return {
    seq: endpoints?.seq ?? 0,
    everPublished: lastPublishAt !== null,
    published: isPublished({ recordExpiresAt }, now),
    lastPublishAt,
    nextRepublishAt: publisher?.state === 'active' ? publisher.dueAt : null,
    recordExpiresAt,
    replicas: endpoints?.replicas ?? 0,
    services: services.map((row) => row.name),
    name: nameOf(profile, services),
    profile,
  };
}
