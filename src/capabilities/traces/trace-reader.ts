/** Reads traces for the owner of this node: from its own requests, and from the nodes of called agents. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { type RequestFacts, type Span, spansOf } from '../../foundation/traces/traced-request.ts';
import type { Traces } from '../../foundation/traces/traces.ts';
import type { SharedRequest } from './shared-traces.ts';

/** Nodes that one trace is read from. */
const MAX_QUERIED = 8;

export interface TraceReaderDependencies {
  readonly traces: Traces;
  /** True for agents of this node. */
  readonly isLocal: (aid: Aid) => boolean;
  /** Reads the spans from the node of a called agent. */
  readonly query: (local: Aid, remote: Aid, traceId: string, signal: AbortSignal) => Promise<readonly SharedRequest[]>;
}

/** The first request of a trace, and how many there are. */
export interface TraceSummary {
  readonly first: RequestFacts;
  readonly requests: number;
  /** The latest end; null while a request runs. */
  readonly end: number | null;
}

/** A span, and the agent whose node reported it; null for this node. */
export type SeenSpan = Span & { readonly reportedBy: Aid | null };

export interface SeenTrace {
  readonly spans: readonly SeenSpan[];
  /** Called agents whose nodes did not show their spans. */
  readonly missing: readonly { readonly aid: Aid; readonly error: SvcError }[];
}

export class TraceReader {
  readonly #deps: TraceReaderDependencies;

  constructor(dependencies: TraceReaderDependencies) {
    this.#deps = dependencies;
  }

  /** The latest traces, newest first. */
  list(limit: number): readonly TraceSummary[] {
    const byTrace = Map.groupBy(this.#deps.traces.all(), ({ traceId }) => traceId).values();
    const summaries = [...byTrace].map((requests): TraceSummary => {
      const first = requests.reduce((one, other) => (other.start < one.start ? other : one));
      const end = requests.reduce<number | null>(
        (last, request) => (last === null || request.end === null ? null : Math.max(last, request.end)),
        first.start,
      );
      return { first, requests: requests.length, end };
    });
    return summaries.sort((one, other) => other.first.start - one.first.start).slice(0, limit);
  }

  /**
   * The spans of a trace in the order of their beginning.
   * @param isLocalOnly without the nodes of called agents
   * @throws SvcError `not_found`
   */
  async get(traceId: string, isLocalOnly: boolean, signal: AbortSignal): Promise<SeenTrace> {
    const own = this.#deps.traces.of(traceId);
    if (own.length === 0)
      throw new SvcError('not_found', {
        thing: 'trace',
        message: 'This node has no spans of this trace. It keeps the newest ones, in memory.',
      });
    const calls = own.filter(({ side, called }) => side === 'caller' && !this.#deps.isLocal(called));
    const pairs = [...Map.groupBy(calls, ({ caller, called }) => `${caller} ${called}`).values()].slice(0, MAX_QUERIED);
    const answers = isLocalOnly ? [] : await Promise.all(pairs.map((group) => this.#query(group, own, signal)));
    const local = own.flatMap(spansOf).map((span): SeenSpan => ({ ...span, reportedBy: null }));
    const spans = [...local, ...answers.flatMap((answer) => answer.spans)];
    return {
      spans: spans.sort((one, other) => one.start - other.start),
      missing: answers.flatMap((answer) => answer.missing),
    };
  }

  /** Reads the spans of some calls from one agent to another. */
  async #query(calls: readonly RequestFacts[], own: readonly RequestFacts[], signal: AbortSignal): Promise<SeenTrace> {
    const [call] = calls;
    if (call === undefined) return { spans: [], missing: [] };
    const { traceId, caller, called } = call;
    let shared: readonly SharedRequest[];
    try {
      shared = await this.#deps.query(caller, called, traceId, signal);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      return { spans: [], missing: [{ aid: called, error }] };
    }
    const spans = shared.flatMap((request) => {
      const parent = calls.find(({ spanId }) => spanId === request.parentId);
      // The other node may say anything. Each of its requests belongs to a call of this node.
      if (parent === undefined || own.some(({ spanId }) => spanId === request.spanId)) return [];
      return spansOf(fitted({ ...request, traceId, side: 'called', caller, called }, parent));
    });
    return { spans: spans.map((span) => ({ ...span, reportedBy: called })), missing: [] };
  }
}

/** Moves a request into the call that sent it, because the clocks of two machines differ. */
function fitted(request: RequestFacts, call: RequestFacts): RequestFacts {
  const latest = request.end === null || call.end === null ? request.start : call.end - (request.end - request.start);
  const shift = Math.max(call.start, Math.min(request.start, latest)) - request.start;
  const moved = (ms: number | null): number | null => (ms === null ? null : ms + shift);
  return {
    ...request,
    start: request.start + shift,
    end: moved(request.end),
    steps: request.steps.map((step) => ({ ...step, start: step.start + shift, end: moved(step.end) })),
  };
}
