/** Messages on lines, as the stdio transports of the SDK read them, but for large integers, which stay what they are. */
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { parseExact } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';

const LINE_FEED = 0x0a;
/** How a line that is a message begins: `{`, or blanks. Also `[`, which is refused as JSON of another kind. */
const BEGINNINGS = new Set([0x7b, 0x5b, 0x20, 0x09]);

export class ExactLines {
  #chunks: Buffer[] = [];
  #length = 0;
  readonly #lines: Buffer[] = [];

  /** @throws Error where a message is too long */
  append(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      const first = this.#chunks[0]?.[0] ?? chunk[from] ?? LINE_FEED;
      // A server that writes a flood of other lines, such as empty ones, must not hold up the servers of other callers.
      if (BEGINNINGS.has(first)) this.#lines.push(Buffer.concat([...this.#chunks, chunk.subarray(from, at)]));
      this.#chunks = [];
      this.#length = 0;
      from = at + 1;
    }
    const rest = chunk.subarray(from);
    this.#length += rest.length;
    if (rest.length > 0) this.#chunks.push(rest);
    if (this.#length <= MAX_SHARED_MESSAGE_BYTES) return;
    this.clear();
    throw new Error(`a message is longer than ${MAX_SHARED_MESSAGE_BYTES} bytes`);
  }

  /** The next message; null where none is whole. Lines that are no JSON are passed over. @throws Error for other JSON */
  readMessage(): JSONRPCMessage | null {
    for (;;) {
      const line = this.#lines.shift();
      if (line === undefined) return null;
      try {
        return parseJSONRPCMessage(parseExact(line.toString('utf8')));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
  }

  clear(): void {
    this.#chunks = [];
    this.#length = 0;
    this.#lines.length = 0;
  }
}

/** Has a stdio transport of the SDK, which has no way to be given a reader, read with this one. Before it is started. */
export function keepLargeIntegers<T extends object>(transport: T): T {
  // A transport that has no such reader any more has to be looked at, and not to be given one that it never asks.
  if (!Reflect.has(transport, '_readBuffer')) throw new Error('the transport of the SDK reads in another way');
  Reflect.set(transport, '_readBuffer', new ExactLines());
  return transport;
}
