/** The callers of an agent, allowed and denied, with a button to change it. */
import { useContext } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { allowCaller, denyCaller } from '../../lib/callers.ts';
import * as format from '../../lib/format.ts';
import { isKey, language, t } from '../../lib/i18n.ts';
import { shortAid } from '../../lib/mark.ts';
import { href } from '../../lib/place.ts';
import { useQuery } from '../../lib/query.ts';
import { Names, Who } from '../../parts/agent.tsx';
import { Answer, Empty, Section, State, T, When } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';
import { type Column, Table } from '../../parts/table.tsx';

type Agent = Output<'agentGet'>;
type Caller = Output<'agentCallers'>['callers'][number];

const CALLERS_MS = 30_000;

interface Props {
  readonly agent: Agent;
  /** Shows only the most recent ones, without the columns about their calls. */
  readonly few?: number;
}

function Decide({ agent, caller }: { readonly agent: Agent; readonly caller: Caller }) {
  const names = useContext(Names);
  const { aid, access } = caller;
  const { acl } = agent;
  if (acl === undefined) return null;
  const name = names.get(aid)?.text ?? shortAid(aid);
  if (access === 'allow')
    return (
      <button
        type="button"
        aria-label={`${t('callers.deny')} ${name}`}
        onClick={() => act(() => denyCaller(agent.aid, aid), t('callers.denied', { name }))}
      >
        {t('callers.deny')}
      </button>
    );
  return (
    <button
      type="button"
      aria-label={`${t('callers.allow')} ${name}`}
      onClick={() =>
        confirm({
          title: t('callers.allow.one', { name }),
          text: t('callers.allow.what'),
          verb: t('callers.allow.one', { name }),
          run: () => allowCaller(agent.aid, acl, aid),
        })
      }
    >
      {t('callers.allow')}
    </button>
  );
}

function Refused({ caller: { refused, last_refusal: last } }: { readonly caller: Caller }) {
  if (refused === 0 || last === null) return <span class="soft">–</span>;
  const key = `error.${last.code}`;
  return (
    <>
      <State tone="bad">{format.count(refused, language)}</State>
      <small title={isKey(key) ? t(key) : last.code}>
        <When at={last.at} ago />
      </small>
    </>
  );
}

function columns(agent: Agent, few: boolean): readonly Column<Caller>[] {
  const calls = ({ calls: plain, tunnels, objects }: Caller): number => plain + tunnels + objects;
  const all: readonly (Column<Caller> | false)[] = [
    { title: t('agent'), cell: ({ aid }) => <Who aid={aid} /> },
    {
      name: 'calls',
      title: t('callers.calls'),
      isNumber: true,
      by: (caller) => -calls(caller),
      cell: (caller) => (calls(caller) === 0 ? <span class="soft">–</span> : format.count(calls(caller), language)),
    },
    {
      name: 'refused',
      title: t('callers.refused'),
      isNumber: true,
      by: ({ refused }) => -refused,
      cell: (caller) => <Refused caller={caller} />,
    },
    !few && { title: t('node.seen'), cell: ({ last_at }) => <When at={last_at} ago /> },
    { title: '', isNumber: true, cell: (caller) => <Decide agent={agent} caller={caller} /> },
  ];
  return all.filter((column) => column !== false);
}

export function Callers({ agent, few }: Props) {
  const callers = useQuery('agentCallers', { aid: agent.aid }, CALLERS_MS);
  const since = callers.value?.since;
  return (
    <Section
      title={t('callers.title')}
      note={since === undefined ? '' : <T k="key.since" when={<When at={since} />} />}
    >
      <Answer of={callers}>
        {({ callers: all }) => {
          if (all.length === 0) return <Empty text={t('callers.none')} />;
          return (
            <>
              <Table
                label={t('callers.title')}
                rows={all.slice(0, few)}
                columns={columns(agent, few !== undefined)}
                keyOf={({ aid }) => aid}
              />
              {few !== undefined && all.length > few && (
                <p class="shown">
                  <a href={href(['agents', agent.aid, 'access'])}>{t('callers.all', { n: all.length })}</a>
                </p>
              )}
            </>
          );
        }}
      </Answer>
    </Section>
  );
}
