/** The agents of the node: the list, or the pages of one agent. */
import { useEffect, useState } from 'preact/hooks';
import { everyAgent } from '../lib/all-agents.ts';
import type { Output } from '../lib/api.ts';
import { loadNetwork, loadTexts, t } from '../lib/i18n.ts';
import { href, keep } from '../lib/place.ts';
import { useQuery } from '../lib/query.ts';
import { Called, Mark, WholeAid } from '../parts/agent.tsx';
import { type Agent, AgentsTable, CHOICE } from '../parts/agents-table.tsx';
import { Answer, Copy, Empty } from '../parts/basics.tsx';
import { Later } from '../parts/later.tsx';
import { openDialog } from '../parts/overlay.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { Access } from './agent/access.tsx';
import { Keys } from './agent/keys.tsx';
import { Overview } from './agent/overview.tsx';
import { Profile } from './agent/profile.tsx';
import { Services } from './agent/services.tsx';
import { Tunnels } from './agent/tunnels.tsx';
import { UseIt } from './agent/use-it.tsx';

const AGENT_MS = 20_000;
const LIST_MS = 30_000;

const loadQr = async () => (await import('./agent/qr-dialog.tsx')).QrDialog;

const loadHooks = async () => {
  await loadTexts(loadNetwork);
  return (await import('./agent/hooks.tsx')).HooksPage;
};
const loadHub = async () => {
  await loadTexts(loadNetwork);
  return (await import('./agent/hub.tsx')).HubPage;
};

const TABS = ['overview', 'services', 'profile', 'access', 'tunnels', 'hooks', 'hub', 'keys', 'use'] as const;
type Tab = (typeof TABS)[number];

interface Props {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

const FILTERS = ['all', 'down', 'unpublished', 'waiting'] as const;
type Filter = (typeof FILTERS)[number];

function fits(agent: Agent, filter: Filter, pending: Output<'agentsList'>['pending']): boolean {
  switch (filter) {
    case 'all':
      return true;
    case 'down':
      return agent.service_tcp !== '' && !agent.service_tcp_ok;
    case 'unpublished':
      return !agent.published;
    case 'waiting':
      return pending?.[agent.aid] !== undefined;
  }
}

const TITLES = {
  network: 'agent.network',
  service: 'service',
  offers: 'agent.offers',
  callers: 'agent.callers',
  waiting: 'agent.waiting',
} as const;

/** Selects the visible columns. */
function Columns({ leftOut }: { readonly leftOut: readonly string[] }) {
  return (
    <details class="menu">
      <summary class="button">{t('columns')}</summary>
      <div>
        {CHOICE.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={!leftOut.includes(name)}
              onChange={({ currentTarget: { checked } }) => {
                const others = leftOut.filter((one) => one !== name);
                keep({ without: (checked ? others : [...others, name]).join(' ') });
              }}
            />
            {t(TITLES[name])}
          </label>
        ))}
      </div>
    </details>
  );
}

function List({ query }: { readonly query: Props['query'] }) {
  const first = useQuery('agentsList', {}, LIST_MS);
  const [rest, setRest] = useState<readonly Agent[]>([]);
  const cursor = first.value?.next_cursor;
  useEffect(() => {
    if (cursor !== undefined) everyAgent(cursor).then(setRest, () => {});
    else setRest([]);
  }, [cursor, first.at]);
  const { q = '', show = 'all', without = '' } = query;
  const leftOut = without.split(' ').filter((name) => name !== '');
  const filter = FILTERS.find((one) => one === show) ?? 'all';
  return (
    <>
      <div class="title">
        <h1>{t('area.agents')}</h1>
        <a class="button" href={href(['new'])}>
          {t('agent.new')}
        </a>
      </div>
      <div class="acts">
        <input
          type="search"
          aria-label={t('filter')}
          placeholder={t('filter')}
          value={q}
          onInput={(event) => keep({ q: event.currentTarget.value })}
        />
        <select aria-label={t('show')} value={filter} onChange={(event) => keep({ show: event.currentTarget.value })}>
          {FILTERS.map((one) => (
            <option key={one} value={one}>
              {t(`show.${one}`)}
            </option>
          ))}
        </select>
        <Columns leftOut={leftOut} />
      </div>
      <Answer of={first}>
        {({ agents, pending }) => {
          const all = [...agents, ...rest];
          const wanted = q.toLowerCase();
          const found = all.filter(
            (agent) =>
              fits(agent, filter, pending) &&
              `${agent.name ?? ''} ${agent.profile?.name ?? ''} ${agent.aid} ${agent.services.join(' ')} ${agent.service_tcp}`
                .toLowerCase()
                .includes(wanted),
          );
          if (all.length === 0)
            return (
              <Empty text={t('agents.none')}>
                <a class="button" href={href(['new'])}>
                  {t('agent.new')}
                </a>
              </Empty>
            );
          return (
            <>
              <p class="soft shown" role="status">
                {t('agents.shown', { n: found.length, all: all.length })}
              </p>
              <AgentsTable agents={found} pending={pending} without={leftOut} />
            </>
          );
        }}
      </Answer>
    </>
  );
}

function Page({ tab, agent }: { readonly tab: Tab; readonly agent: Output<'agentGet'> }) {
  switch (tab) {
    case 'overview':
      return <Overview agent={agent} />;
    case 'services':
      return <Services agent={agent} />;
    case 'profile':
      return <Profile agent={agent} />;
    case 'access':
      return <Access agent={agent} />;
    case 'tunnels':
      return <Tunnels aid={agent.aid} />;
    case 'hooks':
      return <Later load={loadHooks} props={{ aid: agent.aid }} />;
    case 'hub':
      return <Later load={loadHub} props={{ aid: agent.aid }} />;
    case 'keys':
      return <Keys agent={agent} />;
    case 'use':
      return <UseIt agent={agent} />;
  }
}

function One({ aid, tab }: { readonly aid: string; readonly tab: Tab }) {
  const agent = useQuery('agentGet', { aid }, AGENT_MS);
  return (
    <>
      <div class="title">
        <Mark aid={aid} size={36} />
        <div>
          <h1>
            <Called aid={aid} />
          </h1>
          <WholeAid aid={aid} />
        </div>
        <Copy text={aid} />
        <button type="button" onClick={() => openDialog((close) => <Later load={loadQr} props={{ aid, close }} />)}>
          {t('qr.show')}
        </button>
      </div>
      <Tabs
        label={t('agent')}
        tabs={TABS.map((one) => ({
          title: t(`tab.${one}`),
          path: ['agents', aid, ...(one === 'overview' ? [] : [one])],
          isCurrent: one === tab,
        }))}
      />
      <Answer of={agent}>{(value) => <Page tab={tab} agent={value} />}</Answer>
    </>
  );
}

export function Agents({ path: [aid, tab], query }: Props) {
  if (aid === undefined) return <List query={query} />;
  return <One aid={aid} tab={TABS.find((one) => one === tab) ?? 'overview'} />;
}
