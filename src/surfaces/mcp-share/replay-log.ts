/**
 * The last messages of a session, identified by the event IDs of Streamable HTTP. A client with a broken stream, for
 * example after a daemon restart, receives the messages that it missed.
 */
import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

/** Stored messages per session. */
const MAX_EVENTS = 256;
/** Total characters of the stored messages as JSON. */
const MAX_EVENT_CHARS: number = 8 * 1024 * 1024;

interface Kept {
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly chars: number;
}

export class ReplayLog implements EventStore {
  readonly #events = new Map<string, Kept>();
  #chars = 0;
  #last = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    const id = String(++this.#last);
    const chars = JSON.stringify(message).length;
    this.#events.set(id, { streamId, message, chars });
    this.#chars += chars;
    for (const [oldest, { chars: freed }] of this.#events) {
      if (this.#events.size <= MAX_EVENTS && this.#chars <= MAX_EVENT_CHARS) break;
      // The newest message always stays, because a client waits for it.
      if (oldest === id) break;
      this.#events.delete(oldest);
      this.#chars -= freed;
    }
    return id;
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#events.get(eventId)?.streamId;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const streamId = this.#events.get(lastEventId)?.streamId ?? '';
    // The first event of a stream is empty. It only carries an ID for resuming.
    for (const [id, kept] of this.#events)
      if (Number(id) > Number(lastEventId) && kept.streamId === streamId && 'jsonrpc' in kept.message)
        await send(id, kept.message);
    return streamId;
  }
}
