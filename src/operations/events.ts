/** Events: live streams, and a poll. */
import { Type } from 'typebox';
import { EVENT_TYPES } from '../foundation/events.ts';
import { NODE_EVENT_TYPES } from '../foundation/node-events.ts';
import { declare, declareStreams } from './declare.ts';
import { AidParams, AidText, AnyObject, closed, NONE, oneOf, Timestamp, WaitS } from './schemas.ts';

/** Events of one poll. */
export const EVENTS_PAGE = 100;
/** Longest list of event types, characters. */
const MAX_TYPES_LENGTH = 512;

const Seq = Type.Integer({ minimum: 0 });

export const Event = Type.Object({
  seq: Seq,
  type: Type.Union(EVENT_TYPES.map((type) => Type.Literal(type))),
  at: Timestamp,
  aid: AidText,
  data: AnyObject,
});

/** `aid` is the local agent of the event, or the node. */
export const NodeEvent = Type.Object({
  seq: Seq,
  type: oneOf(NODE_EVENT_TYPES),
  at: Timestamp,
  aid: AidText,
  data: AnyObject,
});

function streamQuery(kinds: readonly string[]) {
  return closed({
    last_event_id: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Resumes after this event. The header `Last-Event-ID` takes precedence.',
      }),
    ),
    types: Type.Optional(
      Type.String({
        maxLength: MAX_TYPES_LENGTH,
        description: `Event types, separated by commas: ${kinds.map((type) => `\`${type}\``).join(', ')}.`,
      }),
    ),
  });
}

const COMMON = { params: AidParams, tag: 'Events' } as const;
const STREAMS = {
  ...COMMON,
  methods: ['GET'],
  query: streamQuery(EVENT_TYPES),
  produces: 'text/event-stream',
  permission: 'read',
} as const;

export const eventOperations = declare(COMMON, {
  eventsPoll: {
    summary: 'Reads the events of an agent after a cursor.',
    route: 'GET',
    query: closed({
      after_seq: Type.Optional(
        Type.Integer({
          minimum: 0,
          default: 0,
          description: '`last_seq` of the previous response; 0: from the start.',
        }),
      ),
      wait_s: WaitS,
    }),
    output: Type.Object({
      events: Type.Array(Event),
      last_seq: Seq,
      oldest_seq: Type.Integer({ minimum: 0, description: '0 if no events are stored.' }),
      truncated: Type.Boolean({ description: 'The cursor is too old or unknown. Start again at 0.' }),
    }),
    errors: ['not_found'],
    tool: {
      name: 'svc_events_poll',
      description: 'New events of an agent. Pass last_seq as the next after_seq; if truncated, 0.',
      foreignText: true,
    },
  },
});

export const nodeEventOperations = declare(COMMON, {
  nodeEventsRecent: {
    summary: 'Lists recent events of the node: the newest of each type since the start.',
    route: 'GET /node/events/recent',
    params: NONE,
    query: closed({
      after_seq: Type.Optional(
        Type.Integer({ minimum: 0, default: 0, description: '`last_seq` of the previous response.' }),
      ),
    }),
    output: Type.Object({
      events: Type.Array(NodeEvent),
      last_seq: Seq,
      truncated: Type.Boolean({
        description: 'Events after the cursor were dropped. The list starts with the oldest stored event.',
      }),
    }),
  },
});

export const eventStreams = declareStreams(STREAMS, {
  agentEvents: {
    summary: 'Streams the events of an agent (server-sent events).',
    path: '/agents/{aid}/events',
    errors: ['not_found', 'rate_limited'],
  },

  nodeEvents: {
    summary: 'Streams the events of all local agents (server-sent events).',
    path: '/events',
    params: NONE,
    errors: ['rate_limited'],
  },

  nodeHappenings: {
    summary: 'Streams the events of the node itself (server-sent events).',
    path: '/node/events',
    params: NONE,
    query: streamQuery(NODE_EVENT_TYPES),
    errors: ['rate_limited'],
  },
});
