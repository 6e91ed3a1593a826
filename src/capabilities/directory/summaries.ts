/**
 * Summaries of publications for lists and status pages. They are cached until the publications change: a list of a thousand
 * agents would decode thousands of rows otherwise.
 */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { decodeServicePayload } from '../../foundation/records/payloads.ts';
import { RECORD, type RecordType } from '../../foundation/records/types.ts';
import type { PublicationRow, PublisherState } from '../../foundation/store/publications.ts';
import { type ProfileCard, readProfile } from './cards.ts';
import type { DirectoryDependencies } from './types.ts';

/** Cached summaries; one uses about 500 bytes. */
const MAX_KEPT = 4096;

export class Summaries {
  readonly #deps: Pick<DirectoryDependencies, 'publications' | 'clock'>;
  readonly #kept = new LruCache<Aid, PublicationSummary>({ maxEntries: MAX_KEPT });

  constructor(dependencies: Pick<DirectoryDependencies, 'publications' | 'clock'>) {
    this.#deps = dependencies;
    dependencies.publications.changed.add((aid) => {
      if (aid === null) this.#kept.clear();
      else this.#kept.delete(aid);
    });
  }

  /** Forgets a deleted agent, whose rows are deleted too. */
  forget(aid: Aid): void {
    this.#kept.delete(aid);
  }

  /** The summaries of all given identities. */
  of(aids: readonly Aid[]): Map<Aid, PublicationSummary> {
    const { publications, clock } = this.#deps;
    const now = clock.now();
    const found = new Map<Aid, PublicationSummary>();
    const missing: Aid[] = [];
    for (const aid of aids) {
      const known = this.#kept.get(aid);
      if (known === undefined) missing.push(aid);
      else
        found.set(aid, known.published === isPublished(known, now) ? known : { ...known, published: !known.published });
    }
    if (missing.length === 0) return found;
    const publishers = publications.publishersOf(missing);
    const rows = publications.publicationsOf(missing, SUMMARIZED);
    for (const aid of missing) {
      const summary = summarize(publishers.get(aid), rows.get(aid) ?? [], now);
      this.#kept.set(aid, summary);
      found.set(aid, summary);
    }
    return found;
  }
}

/** The record types in a summary. */
export const SUMMARIZED: readonly RecordType[] = [RECORD.endpoints, RECORD.profile, RECORD.service];

export interface PublicationSummary {
  /** Sequence number of the endpoint record published last; 0 if there was none. */
  readonly seq: number;
  /** An endpoint record was published at some time. */
  readonly everPublished: boolean;
  /** The endpoint record published here is valid now. */
  readonly published: boolean;
  /** Unix milliseconds; null if there is none. */
  readonly lastPublishAt: number | null;
  readonly nextRepublishAt: number | null;
  readonly recordExpiresAt: number | null;
  readonly replicas: number;
  /** Service names that are on the renewal list, in alphabetical order. */
  readonly services: readonly string[];
  /** From the profile card or the first service; empty if neither contains one. */
  readonly name: string;
  readonly profile: ProfileCard | null;
}

function nameOf(profile: ProfileCard | null, services: readonly PublicationRow[]): string {
  const names = services.values().map(({ payload }) => decodeServicePayload(payload)?.name ?? '');
  return profile?.name ?? names.find((name) => name !== '') ?? '';
}

/** True if the endpoint record published here is valid. `now` in Unix milliseconds. */
export function isPublished({ recordExpiresAt }: Pick<PublicationSummary, 'recordExpiresAt'>, now: number): boolean {
  return recordExpiresAt !== null && recordExpiresAt > now;
}

/**
 * A summary for an agent with a delegation, whose end also ends the record.
 * @param delegationEnd Unix seconds; 0 means never
 * @param now Unix milliseconds
 */
export function withinDelegation(summary: PublicationSummary, delegationEnd: number, now: number): PublicationSummary {
  const { recordExpiresAt: end } = summary;
  if (delegationEnd === 0 || end === null || end <= delegationEnd * 1000) return summary;
  const recordExpiresAt = delegationEnd * 1000;
  return { ...summary, recordExpiresAt, published: isPublished({ recordExpiresAt }, now) };
}

/** Summarizes the publications of one identity. `now` in Unix milliseconds. */
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
