/** A client of server-sent events that stores them. */
import { request } from 'node:http';

export interface SseFrame {
  readonly id?: string;
  readonly event?: string;
  readonly data?: unknown;
  readonly retry?: string;
  readonly comment?: true;
}

function frameOf(block: string): SseFrame {
  const frame: Record<string, unknown> = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon === 0) frame['comment'] = true;
    else if (colon > 0) {
      const [key, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
      frame[key] = key === 'data' ? JSON.parse(value) : value;
    }
  }
  return frame;
}

export class SseClient {
  readonly frames: SseFrame[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #close: () => void;
  status = 0;
  ended = false;

  private constructor(close: () => void) {
    this.#close = close;
  }

  /** Opens a stream. Resolves with the head of the response. */
  static open(url: string, headers: Record<string, string> = {}): Promise<SseClient> {
    return new Promise((resolve, reject) => {
      const call = request(url, { headers, agent: false });
      const client = new SseClient(() => call.destroy());
      call.on('error', reject);
      call.on('response', (response) => {
        client.status = response.statusCode ?? 0;
        response.setEncoding('utf8');
        let text = '';
        response.on('data', (chunk: string) => {
          text += chunk;
          const blocks = text.split('\n\n');
          text = blocks.pop() ?? '';
          client.frames.push(...blocks.map(frameOf));
          client.#tell();
        });
        response.on('error', () => {});
        response.on('close', () => {
          client.ended = true;
          client.#tell();
        });
        resolve(client);
      });
      call.end();
    });
  }

  /** The event frames, without openings and comments. */
  get events(): SseFrame[] {
    return this.frames.filter(({ event }) => event !== undefined);
  }

  /** Waits until the received events match. */
  async until(fits: (client: SseClient) => boolean): Promise<void> {
    while (!fits(this)) {
      if (this.ended) throw new Error(`the stream ended with ${JSON.stringify(this.frames)}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  close(): void {
    this.#close();
  }

  #tell(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
