/** In stdio mode stdout belongs to the protocol: one stray line on it, and the client gives up. */
import { Writable } from 'node:stream';

/**
 * Takes stdout for the protocol. From then on everything else that writes to it, `console.log` of a
 * library too, goes to stderr.
 */
export function claimStdout({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'> = process): Writable {
  const write: (chunk: string | Uint8Array, done: (error?: Error | null) => void) => boolean =
    stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  // The client may be gone: then its stdin has ended too, and the session with it.
  stdout.on('error', () => {});
  return new Writable({
    write: (chunk: Uint8Array, _encoding, done) => {
      write(chunk, (error) => done(error));
    },
  });
}
