/** Stdout belongs to the protocol in stdio mode. A single stray line makes the client give up. */
import { Writable } from 'node:stream';

/** Reserves stdout for the protocol. Other writes to it, such as `console.log` of a library, go to stderr. */
export function claimStdout({ stdout, stderr }: Pick<NodeJS.Process, 'stdout' | 'stderr'> = process): Writable {
  const write: (chunk: string | Uint8Array, done: (error?: Error | null) => void) => boolean =
    stdout.write.bind(stdout);
  stdout.write = stderr.write.bind(stderr);
  // If the client disconnects, its stdin ends too, and with it the session.
  stdout.on('error', () => {});
  return new Writable({
    write: (chunk: Uint8Array, _encoding, done) => {
      write(chunk, (error) => done(error));
    },
  });
}
