/** When what goes out again. Pure; times are Unix milliseconds. */
import { backoff } from '../../foundation/backoff.ts';
import { RECORD_TTL_S } from '../../foundation/domain/directory.ts';
import type { PublicationRow } from '../../foundation/store/publications.ts';

/** Part of its life after which a record is renewed. */
const RENEW_AT = 0.5;
/** A renewal may come earlier by up to this part of its interval, so that agents do not move in step. */
const JITTER = 0.1;
/** What is due within this part of its interval goes along with what is due now. */
const GATHER = 0.2;
/** Milliseconds until the first new attempt where nobody acknowledged. */
const RETRY_FIRST_MS = 2000;
/** Most milliseconds between attempts. */
const RETRY_MAX_MS = 120_000;
/** An attempt may come earlier by up to this part of the wait. */
const RETRY_JITTER = 0.5;

function intervalMs({ ttl }: Pick<PublicationRow, 'ttl'>): number {
  return ttl * 1000 * RENEW_AT;
}

/** True where a publication goes out when its publisher's turn has come. */
export function goesOut(row: PublicationRow, now: number): boolean {
  if (row.dirty > 0 || row.publishedAt === null) return true;
  // A clock that was set back must not silence an agent for as long as it was ahead.
  return now >= row.publishedAt + intervalMs(row) * (1 - GATHER) || now < row.publishedAt;
}

/** When the first of these publications is to be renewed; null where there is none. `random` from 0 to below 1. */
export function renewalTime(rows: readonly PublicationRow[], random: number): number | null {
  const times = rows.map((row) => (row.publishedAt ?? 0) + intervalMs(row) * (1 - JITTER * random));
  return times.length === 0 ? null : Math.ceil(Math.min(...times));
}

/** Milliseconds to wait after `failures` attempts in a row; `random` from 0 to below 1. */
export function retryDelay(failures: number, random: number): number {
  return backoff({ firstMs: RETRY_FIRST_MS, maxMs: RETRY_MAX_MS, jitter: RETRY_JITTER }, failures, random);
}

/** Seconds between renewals of an endpoint record. */
export const REPUBLISH_INTERVAL_S: number = RECORD_TTL_S * RENEW_AT;
