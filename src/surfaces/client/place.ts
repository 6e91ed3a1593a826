/** Where a daemon is. */
export interface DaemonOptions {
  /** Such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token; left out where the daemon asks for none. */
  readonly token?: string;
}
