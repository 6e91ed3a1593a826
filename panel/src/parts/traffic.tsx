/** How many bytes go through the node, since the page is open. */
import { useEffect, useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { areaOf, lineOf, type Sample } from '../lib/chart.ts';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { Section } from './basics.tsx';

/** Samples that are kept: an hour of one each ten seconds. */
const MAX_SAMPLES = 360;
const WIDTH = 1000;
const HEIGHT = 100;

let samples: readonly Sample[] = [];

function take({ bytes_up: up, bytes_down: down, network_ready: isReady }: Output<'status'>, at: number): void {
  const last = samples.at(-1);
  // A daemon that has started anew counts from zero.
  if (last !== undefined && (up < last.up || down < last.down)) samples = [];
  samples = [...samples, { at, up, down, isReady }].slice(-MAX_SAMPLES);
}

export function Traffic({ status }: { readonly status: Output<'status'> }) {
  const [, setTaken] = useState(0);
  useEffect(() => {
    take(status, Date.now());
    setTaken(samples.length);
  }, [status]);
  const [first] = samples;
  const size = (count: number): string => format.bytes(count, language);
  const note = t('traffic.sum', { up: size(status.bytes_up), down: size(status.bytes_down) });
  const text = t('traffic.chart', { up: size(status.bytes_up), down: size(status.bytes_down) });
  return (
    <Section title={t('traffic')} note={note}>
      <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={text}>
        <path class="area" d={areaOf(samples, 'down', WIDTH, HEIGHT)} />
        <path class="down" d={lineOf(samples, 'down', WIDTH, HEIGHT)} />
        <path class="up" d={lineOf(samples, 'up', WIDTH, HEIGHT)} />
      </svg>
      <div class="strip" aria-hidden="true">
        {samples.slice(-90).map(({ at, isReady }) => (
          <i key={at} class={isReady ? 'good' : 'bad'} />
        ))}
      </div>
      <div class="ends">
        <span>{first !== undefined && format.time(first.at, Date.now(), language)}</span>
        <span>{t('now')}</span>
      </div>
    </Section>
  );
}
