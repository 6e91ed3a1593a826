/** A client that sends lines continuously, reads them back, and reconnects immediately. */
import { setTimeout as sleep } from 'node:timers/promises';
import { detach } from '../../../src/foundation/detached.ts';
import { dial } from '../tcp.ts';

/** Interval between lines, milliseconds. */
const LINE_MS = 20;
/** Length of a line without its number, bytes. */
const LINE_BYTES = 1000;
/** Timeout of a connection attempt, milliseconds. */
const AGAIN_MS = 200;

export class Pump {
  readonly #address: string;
  #written = 0;
  #back = 0;
  /** Number of connections. */
  connections = 0;
  /** Number of lines out of order. */
  disorder = 0;
  #waiting: (() => void)[] = [];

  /** @param address of an echo service */
  constructor(address: string) {
    this.#address = address;
    detach(this.#run());
  }

  async #run(): Promise<never> {
    for (;;) {
      await this.#once().catch(() => {});
      await sleep(LINE_MS);
    }
  }

  async #once(): Promise<void> {
    const socket = await dial(this.#address);
    this.connections++;
    const closed = new Promise<void>((resolve) => {
      socket.on('error', () => {}).once('close', resolve);
      socket.once('end', () => socket.destroy());
    });
    let rest = '';
    let last = this.#written;
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const number = Number(line.split(' ', 1)[0]);
        if (number !== ++last) this.disorder++;
        this.#back = Math.max(this.#back, number);
      }
      for (const look of this.#waiting) look();
    });
    const writing = setInterval(() => {
      if (!socket.writableNeedDrain) socket.write(`${++this.#written} ${'x'.repeat(LINE_BYTES)}\n`);
    }, LINE_MS);
    await closed;
    clearInterval(writing);
  }

  /** Resolves when a newly sent line is echoed. */
  async flows(): Promise<void> {
    const mark = this.#written;
    while (this.#back <= mark) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
      this.#waiting = [];
    }
  }
}

/** Resolves when a new connection has echoed a text. */
export async function reaches(address: string): Promise<void> {
  const over = new AbortController();
  const attempt = async (): Promise<void> => {
    const socket = await dial(address);
    socket.on('error', () => {}).write('?');
    const came = await new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true)).once('close', () => resolve(false));
    });
    socket.destroy();
    if (came) over.abort();
  };
  while (!over.signal.aborted) {
    detach(attempt().catch(() => {}));
    await sleep(AGAIN_MS);
  }
}
