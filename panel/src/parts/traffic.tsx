/** The traffic of the last 24 hours, and when the node was on the network. */
import type { Output } from '../lib/api.ts';
import { areaOf, availability, lineOf } from '../lib/chart.ts';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { useQuery } from '../lib/query.ts';
import { Answer, Empty, Section } from './basics.tsx';

/** Interval of the query: the daemon takes one sample per minute. */
const ASK_MS = 60_000;
const WIDTH = 1000;
const HEIGHT = 100;
const CELLS = 96;

type Samples = Output<'nodeTraffic'>['samples'];

function Picture({ samples }: { readonly samples: Samples }) {
  const [first] = samples;
  if (first === undefined) return <Empty text={t('traffic.none')} />;
  const minutes = samples.map(({ bytes_up: up, bytes_down: down, ready: isReady }) => ({ up, down, isReady }));
  return (
    <>
      <svg
        class="spark"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={t('traffic.chart', sums(samples))}
      >
        <path class="area" d={areaOf(minutes, 'down', WIDTH, HEIGHT)} />
        <path class="down" d={lineOf(minutes, 'down', WIDTH, HEIGHT)} />
        <path class="up" d={lineOf(minutes, 'up', WIDTH, HEIGHT)} />
      </svg>
      <div class="strip" aria-hidden="true">
        {availability(minutes, CELLS).map((state, i) => (
          <i key={i} class={state} />
        ))}
      </div>
      <div class="ends">
        <span>{format.time(Date.parse(first.at), Date.now(), language)}</span>
        <span>{t('now')}</span>
      </div>
    </>
  );
}

function sums(samples: Samples): { readonly up: string; readonly down: string } {
  const sum = (of: (sample: Samples[number]) => number): string =>
    format.bytes(
      samples.reduce((all, sample) => all + of(sample), 0),
      language,
    );
  return { up: sum((sample) => sample.bytes_up), down: sum((sample) => sample.bytes_down) };
}

export function Traffic() {
  const traffic = useQuery('nodeTraffic', {}, ASK_MS);
  const samples = traffic.value?.samples ?? [];
  return (
    <Section title={t('traffic')} note={samples.length === 0 ? '' : t('traffic.sum', sums(samples))}>
      <Answer of={traffic}>{(value) => <Picture samples={value.samples} />}</Answer>
    </Section>
  );
}
