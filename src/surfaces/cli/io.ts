/** Input and output of a command: the terminal, or a test's streams. */
import type { Readable, Writable } from 'node:stream';

export interface CliIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Stops a command that runs until interrupted. Default: signals of the process. */
  readonly signal?: AbortSignal;
}
