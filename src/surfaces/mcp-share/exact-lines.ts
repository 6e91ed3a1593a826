/**
 * A reader of line-delimited messages like that of the SDK's stdio transports, except that it preserves large integers.
 */
import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { parseExact } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';

const LINE_FEED = 0x0a;
/** First bytes of a line with a message: `{` or whitespace, and `[`, which is then rejected as a batch. */
const MESSAGE_START_BYTES = new Set([0x7b, 0x5b, 0x20, 0x09]);

export class ExactLines {
  #chunks: Buffer[] = [];
  #length = 0;
  readonly #lines: Buffer[] = [];

  /** @throws Error if a message is too long */
  append(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      const first = this.#chunks[0]?.[0] ?? chunk[from] ?? LINE_FEED;
      // Skips other lines early. A flood of them, such as empty lines, must not delay the servers of other callers.
      if (MESSAGE_START_BYTES.has(first)) this.#lines.push(Buffer.concat([...this.#chunks, chunk.subarray(from, at)]));
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

  /**
   * The next complete message, or null. Lines that are not JSON are skipped.
   * @throws Error for other JSON
   */
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

/** Replaces the reader of an SDK stdio transport, which has no option for it. Call it before the transport starts. */
export function keepLargeIntegers<T extends object>(transport: T): T {
  // Fail if the SDK no longer has this field. Setting an unused field would have no effect.
  if (!Reflect.has(transport, '_readBuffer')) throw new Error('the SDK transport no longer has a _readBuffer');
  Reflect.set(transport, '_readBuffer', new ExactLines());
  return transport;
}
