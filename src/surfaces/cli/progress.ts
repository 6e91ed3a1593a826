/** Shows a spinner on a terminal during long work. Silent in a pipe, and for short work. */
import type { CliIo } from './io.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 80;
/** Delay before the spinner, milliseconds. */
const SHOW_AFTER_MS = 300;

/** Runs `work` with a spinner on stderr. */
export async function withProgress<T>(io: CliIo, what: string, work: Promise<T>): Promise<T> {
  if (io.stderr.isTTY !== true) return work;
  let frame = 0;
  let shown = false;
  const started = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - started < SHOW_AFTER_MS) return;
    shown = true;
    io.stderr.write(`\r${FRAMES[frame++ % FRAMES.length]} ${what} …`);
  }, FRAME_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    if (shown) io.stderr.write('\r\u001b[2K');
  }
}
