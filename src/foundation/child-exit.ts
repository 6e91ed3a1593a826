/** The exit of a child process whose output this process reads. */
import type { ChildProcess } from 'node:child_process';
import type { Readable } from 'node:stream';

/** Bytes that a pipe or socket between two processes holds at most, with the kernel's overhead. */
const MAX_PIPE_BYTES = 1024 * 1024;
/** Turns of the event loop without data after which the outputs are empty. The exit is handled during the first. */
const SILENT_TURNS = 2;

/**
 * Calls back once when a child process has exited and its output so far was read, then stops reading. The event `close` of
 * Node waits for the end of the output, which never comes if a process that the child left behind holds it open.
 * @param done receives the exit code; null if a signal ended the process
 */
export function onExit(child: ChildProcess, done: (code: number | null) => void): void {
  child.once('exit', (code) => {
    const outputs = [child.stdout, child.stderr].filter((one) => one !== null);
    drain(outputs, () => {
      for (const output of outputs) output.destroy();
      done(code);
    });
  });
}

/** Waits until all bytes that are already on their way were read. */
function drain(outputs: readonly Readable[], done: () => void): void {
  let silent = 0;
  let bytes = 0;
  const count = (chunk: Uint8Array | string): void => {
    silent = 0;
    bytes += chunk.length;
  };
  for (const output of outputs) output.on('data', count);
  const look = (): void => {
    const isOver = outputs.every(({ readableEnded, destroyed }) => readableEnded || destroyed);
    // A process that the child started may never stop writing.
    if (!isOver && ++silent <= SILENT_TURNS && bytes <= MAX_PIPE_BYTES) {
      setImmediate(look);
      return;
    }
    for (const output of outputs) output.off('data', count);
    done();
  };
  look();
}
