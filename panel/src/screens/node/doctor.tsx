/** The daemon examines itself: what is wrong, and what helps. */
import { useEffect, useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { asFailure, type Failure } from '../../lib/failure.ts';
import { t } from '../../lib/i18n.ts';
import { perform } from '../../lib/query.ts';
import { Answer, Foreign, Section, State } from '../../parts/basics.tsx';

type Finding = Output<'nodeDoctor'>['findings'][number];
type Level = Finding['level'];

/** What needs somebody first. */
const ORDER = ['FAIL', 'WARN', 'INFO', 'PASS'] as const satisfies readonly Level[];
const TONES = { FAIL: 'bad', WARN: 'warn', INFO: 'off', PASS: 'good' } as const satisfies Record<Level, string>;

interface Report {
  readonly value: Output<'nodeDoctor'> | undefined;
  readonly failure: Failure | undefined;
}

function verdictOf(findings: readonly Finding[]): string {
  const count = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  if (count('FAIL') > 0) return t('doctor.bad', { n: count('FAIL') });
  return count('WARN') > 0 ? t('doctor.warned', { n: count('WARN') }) : t('doctor.well');
}

function Row({ finding: { check, level, what, hint } }: { readonly finding: Finding }) {
  return (
    <li>
      <State tone={TONES[level]}>{t(`doctor.${level}`)}</State>
      <span class="grow" lang="en">
        <Foreign text={what} />
        {hint !== undefined && (
          <small class="below">
            <Foreign text={hint} />
          </small>
        )}
      </span>
      <code class="soft">{check}</code>
    </li>
  );
}

export function Doctor() {
  const [report, setReport] = useState<Report>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isWanted = true;
    const show = (shown: Report): void => {
      if (isWanted) setReport(shown);
    };
    perform('nodeDoctor', {}).then(
      (value) => show({ value, failure: undefined }),
      (error: unknown) => show({ value: undefined, failure: asFailure(error) }),
    );
    return () => {
      isWanted = false;
    };
  }, [round]);
  if (report === undefined) return <p class="empty">{t('loading')}</p>;
  const again = (
    <button
      type="button"
      onClick={() => {
        setReport(undefined);
        setRound(round + 1);
      }}
    >
      {t('doctor.again')}
    </button>
  );
  return (
    <Section title={report.value === undefined ? t('node.doctor') : verdictOf(report.value.findings)} note={again}>
      <Answer of={{ ...report, at: 0 }}>
        {({ findings }) => (
          <ul class="rows findings">
            {ORDER.flatMap((level) => findings.filter((finding) => finding.level === level)).map((finding, i) => (
              <Row key={i} finding={finding} />
            ))}
          </ul>
        )}
      </Answer>
    </Section>
  );
}
