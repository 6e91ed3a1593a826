/** What a command reads from and writes to: the real terminal, or a test's. */
import type { Readable, Writable } from 'node:stream';

export interface CliIo {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends a command that would go on for ever; the process is interrupted where it is left out. */
  readonly signal?: AbortSignal;
}
