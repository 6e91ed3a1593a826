/** Traces of calls: the store, the links that share spans with callers, and the export. */
import { randomBytes } from 'node:crypto';
import { TraceExporter } from '../../capabilities/traces/exporter.ts';
import { queryTrace, shareTraces } from '../../capabilities/traces/shared-traces.ts';
import { TraceReader } from '../../capabilities/traces/trace-reader.ts';
import { Traces } from '../../foundation/traces/traces.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';

export function buildTraces(
  { life, clock, log: parent, config, node }: Foundation,
  { identity }: Agents,
  { access }: Access,
  links: AgentLinks,
) {
  const log = parent.child('traces');
  const traces = new Traces({ clock, randomBytes, isOn: config.traces, percent: config.trace_percent });
  shareTraces(links, {
    traces,
    clock,
    log,
    mayRead: (request) =>
      config.share_traces && !access.isClosedTo(request) && access.decide(request.called, request.caller) !== 'deny',
  });
  const traceReader = new TraceReader({
    traces,
    isLocal: (aid) => identity(aid) !== null,
    query: (local, remote, traceId, signal) => queryTrace(links, clock, local, remote, traceId, signal),
  });
  let traceExporter: TraceExporter | null = null;
  if (config.otlp_endpoint !== '') {
    const { otlp_endpoint: endpoint, otlp_headers_file: headersFile } = config;
    const exporter = new TraceExporter({ endpoint, headersFile, instance: node.aid, clock, log, random: Math.random });
    traces.onEnd = (request, holder) => exporter.add(request, holder);
    life.add('acting', exporter);
    traceExporter = exporter;
  }
  return { traces, traceReader, traceExporter };
}
