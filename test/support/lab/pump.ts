/** A client whose bytes go out and come back all the time, and who connects again at once where he is cut off. */
import { setTimeout as sleep } from 'node:timers/promises';
import { detach } from '../../../src/foundation/detached.ts';
import { dial } from '../tcp.ts';

/** From one line to the next, milliseconds. */
const LINE_MS = 20;
/** A line, without its number: bytes. */
const LINE_BYTES = 1000;
/** How long one attempt to connect may take that asks whether anybody is there, milliseconds. */
const AGAIN_MS = 200;

export class Pump {
  readonly #address: string;
  #written = 0;
  #back = 0;
  /** Connections that were made. */
  connections = 0;
  /** Lines that came back in another order than they went. */
  disorder = 0;
  #waiting: (() => void)[] = [];

  /** @param address of a service that sends back what it gets */
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

  /** Settles when something that is written from now on has come back. */
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

/** Settles when a connection that was made after the call has brought a text back. */
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
