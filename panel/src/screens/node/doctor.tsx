/** The findings of the doctor: problems and how to fix them. */
import { useEffect, useState } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { asFailure, type Failure } from '../../lib/failure.ts';
import * as format from '../../lib/format.ts';
import { language, optionalText, t } from '../../lib/i18n.ts';
import { perform } from '../../lib/query.ts';
import type { Values } from '../../lib/text.ts';
import { Answer, Section, State, UntrustedText } from '../../parts/basics.tsx';

type Finding = Output<'nodeDoctor'>['findings'][number];
type Level = Finding['level'];

/** The most serious findings come first. */
const ORDER = ['FAIL', 'WARN', 'INFO', 'PASS'] as const satisfies readonly Level[];
const TONES = { FAIL: 'bad', WARN: 'warn', INFO: 'off', PASS: 'good' } as const satisfies Record<Level, string>;

interface Report {
  readonly value: Output<'nodeDoctor'> | undefined;
  readonly failure: Failure | undefined;
}

/** The values of a finding, with its times in words. */
function shownValues({ values = {} }: Finding): Values {
  const now = Date.now();
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      name.endsWith('_at') && typeof value === 'string' ? format.relative(Date.parse(value), now, language) : value,
    ]),
  );
}

/** A sentence in the language of the panel, or in English if it has no translation. */
function Sentence({ own, english }: { readonly own: string | undefined; readonly english: string }) {
  return (
    <span {...(own === undefined ? { lang: 'en' } : {})}>
      <UntrustedText text={own ?? english} />
    </span>
  );
}

function summary(findings: readonly Finding[]): string {
  const count = (level: Level): number => findings.filter((finding) => finding.level === level).length;
  if (count('FAIL') > 0) return t('doctor.bad', { n: count('FAIL') });
  return count('WARN') > 0 ? t('doctor.warned', { n: count('WARN') }) : t('doctor.well');
}

function Row({ finding }: { readonly finding: Finding }) {
  const { check, level, what, hint, code } = finding;
  const values = shownValues(finding);
  return (
    <li>
      <State tone={TONES[level]}>{t(`doctor.${level}`)}</State>
      <span class="grow">
        <Sentence own={optionalText(`finding.${code}`, values)} english={what} />
        {hint !== undefined && (
          <small class="below">
            <Sentence own={optionalText(`hint.${code}`, values)} english={hint} />
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
    <Section title={report.value === undefined ? t('node.doctor') : summary(report.value.findings)} note={again}>
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
