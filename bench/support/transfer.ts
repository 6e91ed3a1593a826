/** The work of the transfer benchmarks, the same code for every kind of stream. */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';

/** Write size of an application. */
const BLOCK_BYTES = 64 * 1024;

/** The task of a stream for the other process: one byte at its start. */
export const Task = { sink: 1, source: 2, echo: 3, hold: 4 } as const;

/** A task and its argument. */
const HEAD_BYTES = 2;

/** Writes `bytes` zeros with backpressure, and ends the writable half. */
export async function pump(stream: Duplex, bytes: number): Promise<void> {
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let sent = 0; sent < bytes; sent += BLOCK_BYTES) {
    if (!stream.write(block)) await once(stream, 'drain');
  }
  stream.end();
}

/** Reads to the end and returns the number of bytes. */
export async function count(stream: Duplex): Promise<number> {
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  stream.resume();
  await once(stream, 'end');
  return bytes;
}

/** Runs the task that the first bytes of a new stream request. */
export async function serve(stream: Duplex): Promise<void> {
  stream.on('error', () => {});
  const [head]: Buffer[] = await once(stream, 'data');
  stream.pause();
  const [task, mebibytes = 0] = head ?? [];
  if (head !== undefined && head.length > HEAD_BYTES) stream.unshift(head.subarray(HEAD_BYTES));
  if (task === Task.sink) {
    await count(stream);
    stream.end('.');
  } else if (task === Task.source) {
    await pump(stream, mebibytes * 2 ** 20);
    stream.resume();
  } else if (task === Task.echo) stream.pipe(stream);
}

/** Opens a stream with a task and its argument, and waits for its answer if it has one. */
export function begin(stream: Duplex, task: number, mebibytes = 0): void {
  stream.write(Uint8Array.of(task, mebibytes));
}
