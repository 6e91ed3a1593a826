/** An event stream with messages that are filtered before they reach the caller. */
import { createParser } from 'eventsource-parser';
import { isObject, readJson } from '../../foundation/json.ts';
import { parseExact } from './exact-json.ts';
import { MAX_SHARED_MESSAGE_BYTES } from './limits.ts';
import type { RpcMessage } from './messages.ts';

/** Applies `change` to a text if it is a message. */
export function changeMessage(text: string, change: (message: RpcMessage) => RpcMessage): string {
  if (!isObject(readJson(text))) return text;
  const message = parseExact(text);
  if (!isObject(message)) return text;
  const after = change(message);
  return after === message ? text : JSON.stringify(after);
}

/** Transforms the bytes of an event stream into a stream with changed messages. */
export class LimitedStream {
  readonly #decoder = new TextDecoder();
  readonly #parser: ReturnType<typeof createParser>;
  #out: string[] = [];

  constructor(change: (message: RpcMessage) => RpcMessage) {
    const line = (name: string, value: string): void => void this.#out.push(`${name}: ${value}\n`);
    this.#parser = createParser({
      maxBufferSize: MAX_SHARED_MESSAGE_BYTES,
      onEvent: ({ id, event, data }) => {
        if (id !== undefined) line('id', id);
        if (event !== undefined) line('event', event);
        for (const part of changeMessage(data, change).split('\n')) line('data', part);
        this.#out.push('\n');
      },
      onRetry: (ms) => this.#out.push(`retry: ${ms}\n\n`),
      onComment: (text) => this.#out.push(`: ${text}\n\n`),
    });
  }

  /** Returns the complete events of the input so far; empty if no event is complete. */
  push(chunk: Uint8Array): string {
    this.#parser.feed(this.#decoder.decode(chunk, { stream: true }));
    const text = this.#out.join('');
    this.#out = [];
    return text;
  }
}
