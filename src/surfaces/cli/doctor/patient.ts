/** Whom `svc doctor` asks. */
import type { ClientOptions } from '../../../operations/client.ts';
import type { SvcClient } from '../client.ts';

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
