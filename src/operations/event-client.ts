/** Follows an event stream of the daemon, and takes it up again where it breaks off. */
import { createParser, type EventSourceMessage, type ParseError } from 'eventsource-parser';
import { systemClock } from '../foundation/clock.ts';
import { EVENT_HEARTBEAT_MS, EVENT_RETRY_MS } from '../foundation/domain/events.ts';
import { SvcError } from '../foundation/errors.ts';
import { parseJson } from '../foundation/json.ts';
import { SilenceWatch } from '../foundation/stall.ts';
import { baseOf, type ClientOptions, errorOf, failureOf, headersFor } from './client.ts';

/** After this long without anything, not even a sign of life, a stream is dead, milliseconds. */
const SILENCE_MS: number = 3 * EVENT_HEARTBEAT_MS;
/** Longest frame that is taken, characters. */
const MAX_FRAME_CHARS = 4 * 1024 * 1024;

/** One frame of a stream. */
export interface ReceivedEvent {
  /** Number of the event; null for those that have none, such as `pending`. */
  readonly seq: number | null;
  readonly event: string;
  readonly data: unknown;
}

export interface FollowOptions {
  /** One agent; left out: all agents of the daemon. */
  readonly aid?: string | undefined;
  /** Those of the node itself in place of those of agents. */
  readonly node?: boolean | undefined;
  readonly types?: string | undefined;
  /** Number of the last event that was seen; left out: only what comes from now on. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal;
  /** Wait before a broken stream is opened again, milliseconds; `EVENT_RETRY_MS` where it is left out. */
  readonly retryMs?: number;
  /** Told when a stream broke off and will be opened again. */
  readonly onBroken?: (error: SvcError) => void;
}

/** Where a stream stands. */
interface Position {
  id: string | undefined;
  /** The daemon once answered with a stream. */
  stood: boolean;
}

const NUMBER = /^\d+$/;

/** @throws SvcError `protocol_error` where an event is too long, `invalid_json` */
async function* eventsIn(body: AsyncIterable<string>, position: Position, alive: () => void) {
  const received: ReceivedEvent[] = [];
  const parser = createParser({
    maxBufferSize: MAX_FRAME_CHARS,
    // A frame without an event moves the position all the same.
    onId: (id: string) => {
      if (NUMBER.test(id)) position.id = id;
    },
    onEvent: ({ id = '', event = 'message', data }: EventSourceMessage) => {
      received.push({ seq: NUMBER.test(id) ? Number(id) : null, event, data: parseJson(data) });
    },
    onError: ({ type }: ParseError) => {
      if (type === 'max-buffer-size-exceeded')
        throw new SvcError('protocol_error', { message: 'An event is too long.' });
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

/** The stream of one connection. */
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
      // The token goes to the daemon that was named and to nobody else.
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
 * The events of an agent, or of all agents of the daemon. A stream that once stood is opened again
 * behind the last event that came; it ends only with the signal.
 * @throws SvcError what the daemon answers, `daemon_unreachable` where it was not there from the start, `cancelled`
 */
export async function* followEvents(client: ClientOptions, options: FollowOptions): AsyncGenerator<ReceivedEvent> {
  const position: Position = { id: options.after === undefined ? undefined : String(options.after), stood: false };
  for (;;) {
    let failure = new SvcError('daemon_unreachable', { message: 'The daemon ended the stream.' });
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
