/** Follows an event stream of the daemon and reconnects when it breaks. */
import { createParser, type EventSourceMessage, type ParseError } from 'eventsource-parser';
import { systemClock } from '../foundation/clock.ts';
import { EVENT_HEARTBEAT_MS, EVENT_RETRY_MS } from '../foundation/domain/events.ts';
import { SvcError } from '../foundation/errors.ts';
import { parseJson } from '../foundation/json.ts';
import { SilenceWatch } from '../foundation/stall.ts';
import { baseOf, type ClientOptions, errorOf, failureOf, headersFor } from './client.ts';

/** A stream without any data for this long, heartbeats included, is dead. Milliseconds. */
const SILENCE_MS: number = 3 * EVENT_HEARTBEAT_MS;
/** Longest accepted frame, characters. */
const MAX_FRAME_CHARS = 4 * 1024 * 1024;

/** One frame of a stream. */
export interface ReceivedEvent {
  /** Sequence number of the event. Null for events without one, such as `pending`. */
  readonly seq: number | null;
  readonly event: string;
  readonly data: unknown;
}

export interface FollowOptions {
  /** One agent. Default: all agents of the daemon. */
  readonly aid?: string | undefined;
  /** Events of the node instead of agent events. */
  readonly node?: boolean | undefined;
  readonly types?: string | undefined;
  /** Sequence number of the last event seen. Default: only new events. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal;
  /** Wait before a broken stream is opened again, milliseconds. Default: `EVENT_RETRY_MS`. */
  readonly retryMs?: number;
  /** Called when a stream broke and will be opened again. */
  readonly onBroken?: (error: SvcError) => void;
}

/** Position in a stream. */
interface Position {
  id: string | undefined;
  /** The daemon has accepted the stream once. */
  stood: boolean;
}

const NUMBER = /^\d+$/;

/** @throws SvcError `protocol_error` if an event is too long, `invalid_json` */
async function* eventsIn(body: AsyncIterable<string>, position: Position, alive: () => void) {
  const received: ReceivedEvent[] = [];
  const parser = createParser({
    maxBufferSize: MAX_FRAME_CHARS,
    // A frame without an event still moves the position.
    onId: (id: string) => {
      if (NUMBER.test(id)) position.id = id;
    },
    onEvent: ({ id = '', event = 'message', data }: EventSourceMessage) => {
      received.push({ seq: NUMBER.test(id) ? Number(id) : null, event, data: parseJson(data) });
    },
    onError: ({ type }: ParseError) => {
      if (type === 'max-buffer-size-exceeded')
        throw new SvcError('protocol_error', { message: 'The daemon sent an event that is too long.' });
    },
  });
  for await (const chunk of body) {
    alive();
    parser.feed(chunk);
    yield* received.splice(0);
  }
}

function urlOf(base: string, { aid, node, types }: FollowOptions): string {
  const all = node === true ? '/node/events' : '/events';
  const path = aid === undefined ? all : `/agents/${encodeURIComponent(aid)}/events`;
  return `${base}${path}${types === undefined ? '' : `?types=${encodeURIComponent(types)}`}`;
}

/** The events of one connection. */
async function* connection(
  client: ClientOptions,
  options: FollowOptions,
  position: Position,
): AsyncGenerator<ReceivedEvent, void> {
  const base = baseOf(client);
  const silent = new AbortController();
  const silence = new SilenceWatch(systemClock, SILENCE_MS, () => silent.abort());
  try {
    const response = await (client.streamFetch ?? fetch)(urlOf(base, options), {
      headers: {
        ...headersFor(client, 'text/event-stream'),
        ...(position.id === undefined ? {} : { 'last-event-id': position.id }),
      },
      // A redirect would send the token to another server.
      redirect: 'error',
      signal: options.signal === undefined ? silent.signal : AbortSignal.any([options.signal, silent.signal]),
    });
    if (response.status !== 200 || response.body === null)
      throw errorOf(response.status, await response.json().catch(() => undefined));
    position.stood = true;
    yield* eventsIn(response.body.pipeThrough(new TextDecoderStream()), position, silence.heard);
  } catch (error) {
    throw error instanceof SvcError ? error : failureOf(error, base, options);
  } finally {
    silence.stop();
  }
}

/**
 * The events of an agent, or of all agents of the daemon. After a first success, a broken stream is opened again after
 * the last received event. Only the signal ends it.
 * @throws SvcError the errors of the daemon, `daemon_unreachable` if the first connection fails, `cancelled`
 */
export async function* followEvents(client: ClientOptions, options: FollowOptions): AsyncGenerator<ReceivedEvent> {
  const position: Position = { id: options.after === undefined ? undefined : String(options.after), stood: false };
  for (;;) {
    let failure = new SvcError('daemon_unreachable', { message: 'The daemon closed the event stream.' });
    try {
      yield* connection(client, options, position);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      const passing = error.code === 'daemon_unreachable' || error.code === 'rate_limited';
      if (!passing || !position.stood) throw error;
      failure = error;
    }
    options.onBroken?.(failure);
    await pause(options.retryMs ?? EVENT_RETRY_MS, options.signal);
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(new SvcError('cancelled'));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    if (signal?.aborted === true) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}
