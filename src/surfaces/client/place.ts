/** The address of a daemon. */
export interface DaemonOptions {
  /** Such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token. Omit it if the daemon requires none. */
  readonly token?: string;
}
