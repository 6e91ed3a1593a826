/** What an examination looks at. */
import { memberOf } from '../../../foundation/json.ts';
import type { ClientOptions } from '../../../operations/client.ts';
import type { AnswerOf, SvcClient } from '../client.ts';

export interface Patient {
  readonly client: SvcClient;
  /** Where the daemon should answer, and the token for it. */
  readonly connection: ClientOptions;
  /** The daemon's address as the user knows it. */
  readonly api: string;
  /** True where the daemon is meant to run on this machine: then its files can be looked at. */
  readonly here: boolean;
  /** Where a daemon of this user keeps its data. */
  readonly dataDir: string;
  /** Version of this command. */
  readonly version: string;
}

export type FindingStatus = AnswerOf<'status'>;

export function textMember(document: unknown, name: string): string {
  const value = memberOf(document, name);
  return typeof value === 'string' ? value : '';
}

/** The texts in a list. */
export function listMember(document: unknown, name: string): readonly string[] {
  const value = memberOf(document, name);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
