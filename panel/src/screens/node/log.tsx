/** The newest log lines of the daemon, with a filter and a pause button. */
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { keep } from '../../lib/place.ts';
import { useQuery } from '../../lib/query.ts';
import { shownText } from '../../lib/shown-text.ts';
import { Answer, Copy, Empty, State, UntrustedText, When } from '../../parts/basics.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useHeld } from './live.tsx';

type Line = Output<'nodeLog'>['lines'][number];
type Level = Line['level'];

const LOOK_MS = 10_000;
/** Lines to request. */
const LINES = 500;
const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly Level[];
const TONES = { debug: 'off', info: 'good', warn: 'warn', error: 'bad' } as const satisfies Record<Level, string>;

/** The fields after the message, in one line. */
function fieldsOf({ fields }: Line): string {
  return Object.keys(fields).length === 0 ? '' : JSON.stringify(fields);
}

const columns = (): readonly Column<Line>[] => [
  { title: t('admin.when'), cell: ({ at }) => <When at={at} /> },
  { title: t('log.level'), cell: ({ level }) => <State tone={TONES[level]}>{level}</State> },
  { title: t('log.component'), cell: ({ component }) => <code class="soft">{component ?? ''}</code> },
  {
    title: t('log.message'),
    cell: (line) => (
      <span lang="en">
        <UntrustedText text={line.message} />
        {fieldsOf(line) !== '' && (
          <small class="below">
            <code class="fields">{shownText(fieldsOf(line))}</code>
          </small>
        )}
      </span>
    ),
  },
];

interface Props {
  readonly q?: string | undefined;
  readonly level?: string | undefined;
}

export function Log({ q = '', level: named }: Props) {
  const level = LEVELS.find((one) => one === named) ?? 'info';
  const known = useQuery('nodeLog', { level, limit: LINES }, LOOK_MS);
  const { shown, tools } = useHeld(
    known,
    q,
    <select
      aria-label={t('log.level')}
      value={level}
      onChange={({ currentTarget }) => keep({ level: currentTarget.value })}
    >
      {LEVELS.map((one) => (
        <option key={one}>{one}</option>
      ))}
    </select>,
  );
  return (
    <>
      {tools}
      <Answer of={shown}>
        {({ lines }) => {
          const wanted = q.toLowerCase();
          const found = lines
            .filter((line) =>
              `${line.component ?? ''} ${line.message} ${fieldsOf(line)}`.toLowerCase().includes(wanted),
            )
            .toReversed();
          if (found.length === 0) return <Empty text={t('log.none')} />;
          return (
            <>
              <Table label={t('node.log')} rows={found} columns={columns()} keyOf={({ seq }) => String(seq)} />
              <div class="acts">
                <Copy text={found.map((line) => JSON.stringify(line)).join('\n')} />
              </div>
            </>
          );
        }}
      </Answer>
    </>
  );
}
