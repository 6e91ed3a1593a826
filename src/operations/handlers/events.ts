/** Handlers of the event streams and the poll. */
import type { ServerResponse } from 'node:http';
import type { EventLog, EventPage } from '../../capabilities/events/event-log.ts';
import type { EventSource, EventStreams } from '../../capabilities/events/event-streams.ts';
import type { EventWaits } from '../../capabilities/events/event-waits.ts';
import { isoTime } from '../../foundation/clock.ts';
import { LOG_TRUNCATED } from '../../foundation/domain/events.ts';
import { SvcError } from '../../foundation/errors.ts';
import { EVENT_TYPES } from '../../foundation/events.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { NODE_EVENT_TYPES } from '../../foundation/node-events.ts';
import { EVENTS_PAGE, type eventOperations, type eventStreams, type nodeEventOperations } from '../events.ts';
import type { Handlers, OutputOf } from '../operation.ts';
import type { StreamExchange, StreamHandlers } from './exchange.ts';
import type { OwnAgents } from './local-agents.ts';

export interface EventHandlerDependencies extends OwnAgents {
  readonly log: EventLog;
  readonly waits: EventWaits;
}

type NodeEventView = OutputOf<typeof nodeEventOperations.nodeEventsRecent>['events'][number];
type EventView = OutputOf<typeof eventOperations.eventsPoll>['events'][number];

export function eventHandlers({
  log,
  waits,
  requireAgent,
}: EventHandlerDependencies): Handlers<typeof eventOperations> {
  return {
    eventsPoll: async ({ aid, after_seq = 0, wait_s }, client) => {
      const read = () => log.page(requireAgent(aid), after_seq, EVENTS_PAGE);
      const isEmpty = ({ events, truncated }: EventPage) => events.length === 0 && !truncated;
      const page = await waits.until({ aid, wait_s, client }, read, isEmpty);
      return {
        events: page.events.map(({ seq, type, at, aid: owner, data }) => ({
          seq,
          type: type as EventView['type'],
          at: isoTime(at),
          aid: owner,
          data: JSON.parse(data) as EventView['data'],
        })),
        last_seq: page.lastSeq,
        oldest_seq: page.oldestSeq,
        truncated: page.truncated,
      };
    },
  };
}

function invalid(path: string, problem: string): SvcError {
  return new SvcError('invalid_request', {
    message: `Invalid query: ${path} ${problem}.`,
    details: { in: 'query', path, problem },
  });
}

/** Types that are sent even without being requested. */
const ALWAYS: ReadonlySet<string> = new Set(['pending', LOG_TRUNCATED]);

/** @throws SvcError `invalid_request` */
function typesOf(list: unknown, kinds: readonly string[]): readonly string[] | undefined {
  if (typeof list !== 'string') return undefined;
  const names = list.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !kinds.includes(name) && !ALWAYS.has(name));
  if (unknown !== undefined) throw invalid('/types', `must be a list of event types: ${kinds.join(', ')}`);
  return names.filter((name) => kinds.includes(name));
}

/**
 * The header takes precedence: a browser that reconnects repeats the URL and sends its position in the header.
 * @throws SvcError `invalid_request`
 */
function cursorOf({ request, input }: StreamExchange): number | undefined {
  const header = request.headers['last-event-id'];
  if (typeof header === 'string' && header !== '') {
    if (!/^\d{1,15}$/.test(header)) throw invalid('/last_event_id', 'must be an event id');
    return Number(header);
  }
  const query = input['last_event_id'];
  return typeof query === 'number' ? query : undefined;
}

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' };

interface Kinds {
  readonly streams: EventStreams;
  readonly kinds: readonly string[];
}

function open({ streams, kinds }: Kinds, aid: Aid | null, exchange: StreamExchange): void {
  const { response, input } = exchange;
  const after = cursorOf(exchange);
  const types = typesOf(input['types'], kinds);
  streams.admit();
  // The client may have disconnected already.
  if (response.destroyed) return;
  response.writeHead(200, HEADERS);
  const { drained, closed } = streams.subscribe({ aid, types, after }, outlet(response));
  response.on('drain', drained);
  response.once('close', closed);
}

function outlet(response: ServerResponse) {
  return {
    write: (frames: Buffer) => !response.destroyed && response.write(frames),
    end: () => void response.end(),
    destroy: () => void response.destroy(),
  };
}

/** Handlers of the events of the node. */
export function nodeEventHandlers({ events }: { readonly events: EventSource }): Handlers<typeof nodeEventOperations> {
  return {
    nodeEventsRecent: ({ after_seq = 0 }) => {
      const { prunedSeq, lastSeq } = events.bounds(null);
      const truncated = events.misses(after_seq, prunedSeq);
      return {
        events: events
          .after(truncated ? 0 : after_seq, Number.POSITIVE_INFINITY)
          .map(({ type, at, data, ...rest }) => ({
            ...rest,
            type: type as NodeEventView['type'],
            at: isoTime(at),
            data: JSON.parse(data) as NodeEventView['data'],
          })),
        last_seq: lastSeq,
        truncated,
      };
    },
  };
}

interface StreamHandlerDependencies extends OwnAgents {
  readonly streams: EventStreams;
  /** Events of the node. */
  readonly nodeStreams: EventStreams;
  /** A stream of an agent opened. Returns a function to call when it has closed. */
  readonly onFollowed?: (aid: Aid) => () => void;
}

export function eventStreamHandlers({
  streams,
  nodeStreams,
  requireAgent,
  onFollowed = () => () => {},
}: StreamHandlerDependencies): StreamHandlers<typeof eventStreams> {
  const agents = { streams, kinds: EVENT_TYPES };
  return {
    agentEvents: (exchange) => {
      const aid = requireAgent(parseAid(String(exchange.input['aid'])));
      open(agents, aid, exchange);
      if (!exchange.response.destroyed) exchange.response.once('close', onFollowed(aid));
    },
    nodeEvents: (exchange) => open(agents, null, exchange),
    nodeHappenings: (exchange) => open({ streams: nodeStreams, kinds: NODE_EVENT_TYPES }, null, exchange),
  };
}
