/** `svc events`: what happened to the agents here, and what happens. */
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import { EVENT_TYPES } from '../../../foundation/events.ts';
import { isObject } from '../../../foundation/json.ts';
import { followEvents } from '../../../operations/event-client.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { safeJson, safeLine } from '../text.ts';
import { integer } from '../values.ts';

interface EventsOptions {
  readonly aid?: string;
  readonly types?: string;
  readonly follow?: boolean;
  readonly since?: number;
}

interface Shown {
  readonly seq: number | null;
  readonly type: string;
  readonly at?: unknown;
  readonly aid?: unknown;
  readonly data: unknown;
}

/** One line for each event: JSON for machines, a sentence for people. */
function print({ io, options }: CliContext, event: Shown): void {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  const number = event.seq === null ? '' : `#${event.seq}`;
  const line =
    options.json === true
      ? safeJson(event)
      : options.quiet === true
        ? safeLine(event.type)
        : safeLine(
            [number, text(event.at), text(event.aid), event.type, JSON.stringify(event.data)]
              .filter((t) => t !== '')
              .join('  '),
          );
  io.stdout.write(`${line}\n`);
}

/** A page of `svc_events_poll`, as far as it is looked at. */
interface Page {
  readonly events: readonly Shown[];
  readonly last_seq: number;
  readonly truncated: boolean;
}

/** @throws SvcError `invalid_request`: the log would seem empty */
function readTypes(text: string | undefined): readonly string[] | undefined {
  const wanted = text?.split(',').map((type) => type.trim());
  const unknown = wanted?.find((name) => !EVENT_TYPES.some((type) => type === name));
  if (unknown === undefined) return wanted;
  throw new SvcError('invalid_request', {
    message: `"${unknown}" is no kind of event. Choose from ${EVENT_TYPES.join(', ')}.`,
  });
}

/** Prints what the log holds, page by page. */
async function showLog(context: CliContext, options: EventsOptions): Promise<void> {
  const aid = await context.localAgent(options.aid);
  const wanted = readTypes(options.types);
  let after = options.since ?? 0;
  let shown = 0;
  for (;;) {
    const args = { aid, after_seq: after };
    const page = (await context.client.toolCall({ tool: 'svc_events_poll', args })) as unknown;
    if (!isPage(page)) throw new SvcError('protocol_error', { message: 'The daemon answered in an unknown form.' });
    if (page.truncated) context.note('Events behind --since are gone: this begins with the oldest that is kept.');
    const events = page.events.filter(({ type }) => wanted?.includes(type) !== false);
    for (const event of events) print(context, event);
    shown += events.length;
    if (!page.truncated && page.events.length === 0) break;
    after = page.truncated ? 0 : page.last_seq;
  }
  if (shown === 0) context.note('Nothing has happened.');
}

function isPage(value: unknown): value is Page {
  return typeof value === 'object' && value !== null && 'events' in value && Array.isArray(value.events);
}

async function follow(context: CliContext, { aid: named, types, since }: EventsOptions): Promise<void> {
  const aid = named === undefined ? undefined : await context.aid(named);
  const onBroken = (error: SvcError): void => context.note(`${error.message} Trying again.`);
  const { signal } = context.io;
  const options = { aid, types, after: since, onBroken, ...(signal === undefined ? {} : { signal }) };
  for await (const { seq, event, data } of followEvents(context.connection, options)) {
    // Logged events carry what they are about; `pending` is nothing but its data.
    const logged = isObject(data) && typeof data['type'] === 'string';
    print(
      context,
      logged ? { seq, type: event, at: data['at'], aid: data['aid'], data: data['data'] } : { seq, type: event, data },
    );
  }
}

export function eventCommands(program: Command, contextOf: ContextOf): void {
  program
    .command('events')
    .description('show what happened to an agent, or follow what happens')
    .addHelpText(
      'after',
      examples(
        'svc events --since 17',
        'svc events --follow --types chat.unread,mailbox.received',
        'svc events --follow --json | jq .type',
      ),
    )
    .option('--aid <aid>', 'one agent; with --follow all of them where it is left out')
    .option('--types <list>', 'kinds, separated by commas, such as chat.unread,mailbox.received')
    .option('--since <seq>', 'begin behind the event of this number', integer)
    .option('--follow', 'go on until interrupted; comes back after the daemon was restarted')
    .action(async (options: EventsOptions, command: Command) => {
      const context = contextOf(command);
      await (options.follow === true ? follow(context, options) : showLog(context, options));
    });
}
