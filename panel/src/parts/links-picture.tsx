/** A picture of the connections and their paths. */
import type { Output } from '../lib/api.ts';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { Called, Mark, Who } from './agent.tsx';
import { Empty } from './basics.tsx';

type Link = Output<'nodeLinks'>['links'][number];

const ROW_PX = 44;
const WIDTH = 300;
/** Most connections in the picture. */
const MAX_DRAWN = 12;

interface Line {
  readonly from: string;
  readonly to: string;
  readonly link: Link;
}

function linesOf(links: readonly Link[]): readonly Line[] {
  return links.flatMap((link) =>
    link.agents.length === 0
      ? [{ from: '', to: link.node, link }]
      : link.agents.flatMap(({ aid, local_aids }) => local_aids.map((from) => ({ from, to: aid, link }))),
  );
}

export function LinksPicture({ links }: { readonly links: readonly Link[] }) {
  const lines = linesOf(links).slice(0, MAX_DRAWN);
  if (lines.length === 0) return <Empty text={t('links.none')} />;
  const froms = [...new Set(lines.map(({ from }) => from))];
  const tos = [...new Set(lines.map(({ to }) => to))];
  const height = Math.max(froms.length, tos.length) * ROW_PX;
  const middle = (row: number): number => row * ROW_PX + ROW_PX / 2;
  return (
    <div class="picture links">
      <ul>
        {froms.map((aid) => (
          <li key={aid}>{aid === '' ? <small>{t('links.node')}</small> : <Who aid={aid} />}</li>
        ))}
      </ul>
      <svg height={height} viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {lines.map(({ from, to, link }, i) => {
          const a = middle(froms.indexOf(from));
          const b = middle(tos.indexOf(to));
          const half = WIDTH / 2;
          const kind = from === '' ? 'helper' : link.path;
          return <path key={i} class={kind} d={`M0 ${a}C${half} ${a} ${half} ${b} ${WIDTH} ${b}`} />;
        })}
      </svg>
      <ul>
        {tos.map((aid) => {
          const link = lines.find(({ to }) => to === aid)?.link;
          return (
            <li key={aid}>
              {lines
                .filter(({ to }) => to === aid)
                .map(({ from }) => (
                  <small key={from} class="from">
                    {from === '' ? t('links.node') : <Called aid={from} />} –
                  </small>
                ))}
              {link?.agents.length === 0 ? <Mark aid={aid} /> : <Who aid={aid} />}
              <small>{link !== undefined && ` ${t(`path.${link.path}`)} · ${format.ms(link.rtt_ms, language)}`}</small>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
