/** Access lists as the API returns them, without the secrets. */
import { isoTime } from '../../foundation/clock.ts';
import type { AccessPolicy } from '../../foundation/domain/access.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AidEntry, SecretEntry } from '../../foundation/store/access.ts';

export interface AllowEntryView {
  id: string;
  aid?: Aid;
  secret_set?: true;
  label?: string;
  created_at: string;
  expires_at?: string;
}

export interface DenyEntryView {
  id: string;
  aid: Aid;
  created_at: string;
}

export interface AccessView {
  default: AccessPolicy;
  allow: AllowEntryView[];
  deny: DenyEntryView[];
}

export function allowView(entry: AidEntry | SecretEntry): AllowEntryView {
  return {
    id: entry.id,
    ...('aid' in entry ? { aid: entry.aid } : { secret_set: true }),
    ...(entry.label === null ? {} : { label: entry.label }),
    created_at: isoTime(entry.createdAt),
    ...(entry.expiresAt === null ? {} : { expires_at: isoTime(entry.expiresAt) }),
  };
}

export function denyView(entry: AidEntry): DenyEntryView {
  return { id: entry.id, aid: entry.aid, created_at: isoTime(entry.createdAt) };
}
