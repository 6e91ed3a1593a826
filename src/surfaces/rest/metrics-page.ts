/** `GET /metrics` in the Prometheus text format, version 0.0.4. */
import type { Metric, MetricSource, Sample } from '../../foundation/metrics.ts';
import type { HttpStreamHandler } from '../../operations/handlers/exchange.ts';

const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}

function sampleLine(name: string, { suffix, labels = {}, value }: Sample): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  return `${name}${suffix ?? ''}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${numberText(value)}\n`;
}

/** Formats metrics. Metrics without samples are omitted. */
export function metricsText(metrics: readonly Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, help, type, samples }) => {
      const comment = help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
      const lines = samples.map((sample) => sampleLine(name, sample)).join('');
      return `# HELP ${name} ${comment}\n# TYPE ${name} ${type}\n${lines}`;
    })
    .join('');
}

/** Serves the current metrics of all sources. */
export function metricsHandler(sources: readonly MetricSource[]): HttpStreamHandler {
  return ({ response }) => {
    response.writeHead(200, { 'content-type': TEXT_TYPE }).end(metricsText(sources.flatMap((source) => source())));
  };
}
