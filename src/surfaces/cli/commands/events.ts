/** `svc events`: past and live events of the local agents. */
import { SvcError } from '../../../foundation/errors.ts';
import { EVENT_TYPES } from '../../../foundation/events.ts';
import { isObject } from '../../../foundation/json.ts';
import { NODE_EVENT_TYPES } from '../../../foundation/node-events.ts';
import { followEvents } from '../../../operations/event-client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { integer, namedAgent, type ParsedOptions } from '../options.ts';
import { safeJson, safeLine } from '../text.ts';

const OPTIONS = {
  '--aid <aid>': namedAgent('one agent; with --follow the default is all agents'),
  '--node': 'events of the node itself: links, tunnels, refused callers, agents, network, configuration, updates',
  '--types <list>': 'event types, separated by commas, such as chat.unread,mailbox.received',
  '--since <seq>': integer('start after the event with this number'),
  '--follow': 'follow until interrupted; reconnects after a restart of the daemon',
} as const;

type EventsOptions = ParsedOptions<'', typeof OPTIONS>;

interface EventLine {
  readonly seq: number | null;
  readonly type: string;
  readonly at?: unknown;
  readonly aid?: unknown;
  readonly data: unknown;
}

/** One line per event: JSON for programs, a sentence for people. */
async function print(context: CliContext, event: EventLine): Promise<void> {
  const { io, options } = context;
  const { seq, type } = event;
  if (options.json === true || options.quiet === true)
    return void io.stdout.write(`${options.json === true ? safeJson(event) : safeLine(type)}\n`);
  const [{ at, aid, data }] = (await context.names(event)).in([event]);
  const all = [seq === null ? '' : `#${seq}`, at, aid, type, JSON.stringify(data)];
  io.stdout.write(`${safeLine(all.filter((one) => typeof one === 'string' && one !== '').join('  '))}\n`);
}

/** Parses --types. @throws SvcError `invalid_request` for an unknown type, because the log would look empty */
function readTypes(text: string | undefined, kinds: readonly string[]): readonly string[] | undefined {
  const wanted = text?.split(',').map((type) => type.trim());
  const unknown = wanted?.find((name) => !kinds.includes(name));
  if (unknown === undefined) return wanted;
  throw new SvcError('invalid_request', {
    message: `Unknown event type "${unknown}". Choose from ${kinds.join(', ')}.`,
  });
}

/** Prints the stored events, page by page. */
async function showLog(context: CliContext, options: EventsOptions): Promise<void> {
  const aid = await context.localAgent(options.aid);
  const wanted = readTypes(options.types, EVENT_TYPES);
  let after = options.since ?? 0;
  let shown = 0;
  for (;;) {
    const page = await context.client.eventsPoll({ aid, after_seq: after });
    if (page.truncated)
      context.info('Events after --since were removed. The list starts with the oldest stored event.');
    const events = page.events.filter(({ type }) => wanted?.includes(type) !== false);
    for (const event of events) await print(context, event);
    shown += events.length;
    if (!page.truncated && page.events.length === 0) break;
    after = page.truncated ? 0 : page.last_seq;
  }
  if (shown === 0) context.info('No events.');
}

/** Prints the stored events of the node. */
async function showNode(context: CliContext, { types, since }: EventsOptions): Promise<void> {
  const wanted = readTypes(types, NODE_EVENT_TYPES);
  const { events: all, truncated } = await context.client.nodeEventsRecent({ after_seq: since });
  const events = all.filter(({ type }) => wanted?.includes(type) !== false);
  if (truncated) context.info('Events after --since were removed. The list starts with the oldest stored event.');
  for (const event of events) await print(context, event);
  if (events.length === 0) context.info('No events since the daemon started.');
}

async function follow(context: CliContext, { aid: named, node, types, since }: EventsOptions): Promise<void> {
  const aid = named === undefined ? undefined : await context.aid(named);
  const onBroken = (error: SvcError): void => context.info(`${error.message} Retrying.`);
  const { signal } = context.io;
  const options = { aid, node, types, after: since, onBroken, ...(signal === undefined ? {} : { signal }) };
  for await (const { seq, event, data } of followEvents(context.connection, options)) {
    // Stored events name their subject. A `pending` event consists of its data.
    const logged = isObject(data) && typeof data['type'] === 'string';
    await print(
      context,
      logged ? { seq, type: event, at: data['at'], aid: data['aid'], data: data['data'] } : { seq, type: event, data },
    );
  }
}

export function eventCommands(svc: CommandGroup): void {
  svc.run('events', 'show the events of an agent, or follow new ones', {
    examples: [
      'svc events --since 17',
      'svc events --follow --types chat.unread,mailbox.received',
      'svc events --follow --json | jq .type',
      'svc events --node --follow',
    ],
    options: OPTIONS,
    // Each function prints line by line.
    run: (context, typed) => {
      if (typed.follow === true) return follow(context, typed);
      return typed.node === true ? showNode(context, typed) : showLog(context, typed);
    },
    text: () => '',
  });
}
