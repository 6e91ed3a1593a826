/** The target of `svc doctor`. */
import type { ClientOptions } from '../../../operations/client.ts';
import type { SvcClient } from '../client.ts';

export interface ExaminedDaemon {
  readonly client: SvcClient;
  /** Base URL and token of the daemon. */
  readonly connection: ClientOptions;
  /** The address of the daemon as the user gave it. */
  readonly api: string;
  /** True if the daemon should run on this machine, so that its files can be checked. */
  readonly here: boolean;
  /** Default data directory of this user. */
  readonly dataDir: string;
  /** Version of this command. */
  readonly version: string;
}
