/** `svc trace`: the latest traces of calls, or one trace. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { integer } from '../options.ts';
import { formatTable, type OutputText } from '../text.ts';

type Trace = AnswerOf<'traceGet'>;
type Span = Trace['spans'][number];
type Next = { readonly next: string };
type Shown = Next | { readonly list: AnswerOf<'traceList'> } | { readonly trace: Trace };

function milliseconds(ms: number | null): string {
  return ms === null ? 'running' : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function resultText(status: unknown, error: unknown): string {
  return [status, error].filter((part) => part !== undefined && part !== null && part !== String(status)).join(' ');
}

function listText({ traces }: AnswerOf<'traceList'>): OutputText {
  const rows = traces.map((one) => [
    one.trace_id,
    relativeTime(one.started_at, Date.now()),
    one.caller,
    one.called,
    one.method,
    one.requests,
    milliseconds(one.duration_ms),
    resultText(one.status, one.error),
  ]);
  const head = ['TRACE', 'STARTED', 'CALLER', 'CALLED', 'METHOD', 'REQUESTS', 'TIME', 'RESULT'];
  return formatTable(
    head,
    rows,
    'No traces. One call in a hundred and the last failed one leave them. For the next call: svc trace --next <agent>',
  );
}

/** The spans below a parent with their depth, in the order of their beginning. */
function tree(spans: readonly Span[], parent: Span | null, depth: number): readonly (readonly [Span, number])[] {
  const ids = new Set(spans.map(({ span_id }) => span_id));
  const below = spans.filter((span) =>
    parent === null ? span.parent_id === null || !ids.has(span.parent_id) : span.parent_id === parent.span_id,
  );
  return below.flatMap((span) => [[span, depth] as const, ...tree(spans, span, depth + 1)]);
}

function traceText({ spans, missing }: Trace): OutputText {
  const rows = tree(spans, null, 0).map(([{ name, kind, start_ms, duration_ms, attributes, reported_by }, depth]) => [
    `${'  '.repeat(depth)}${kind === 'server' ? `served ${name}` : name}`,
    attributes[kind === 'server' ? 'client.address' : 'server.address'],
    milliseconds(start_ms),
    milliseconds(duration_ms),
    attributes['svcd.path.kind'],
    resultText(attributes['http.response.status_code'], attributes['error.type']),
    reported_by ?? 'this node',
  ]);
  const head = ['SPAN', 'AGENT', 'AFTER', 'TIME', 'PATH', 'RESULT', 'SEEN BY'];
  return [
    formatTable(head, rows),
    ...missing.map(({ aid, error }) => `The node of ${aid} showed no spans (${error}).`),
  ];
}

export function traceCommands(svc: CommandGroup): void {
  svc.run('trace', 'show the latest traces of calls, or one with its steps on all nodes that show them', {
    examples: [
      'svc trace',
      'svc trace --next home',
      'svc trace 4bf92f3577b34da6a3ce929d0e0e4736',
      'svc trace --json | jq .traces[0]',
    ],
    options: {
      '[trace]': 'the trace ID, 32 hex digits, or its beginning',
      '--next <agent>': {
        about: 'trace the next call to this agent, by a local agent or as it arrives here',
        read: (text: string): string => text,
        conflicts: ['local', 'limit'],
      },
      '--local': 'only the spans of this node',
      '--limit <count>': integer('maximum number of traces in the list'),
    },
    run: async ({ client }, { trace, next, local, limit }): Promise<Shown> => {
      if (next !== undefined) {
        await client.traceNext({ aid: next });
        return { next };
      }
      if (trace === undefined) return { list: await client.traceList(limit === undefined ? {} : { limit }) };
      return { trace: await client.traceGet({ trace_id: trace, ...(local === true ? { local } : {}) }) };
    },
    json: (shown) => ('next' in shown ? {} : 'list' in shown ? shown.list : shown.trace),
    text: (shown) => {
      if ('next' in shown) return `The next call to ${shown.next} is traced. Show it: svc trace`;
      return 'list' in shown ? listText(shown.list) : traceText(shown.trace);
    },
    quiet: (shown) => {
      if ('next' in shown) return '';
      return 'list' in shown ? shown.list.traces.map(({ trace_id }) => trace_id).join('\n') : shown.trace.trace_id;
    },
  });
}
