/** The table of agents on the home screen and the agents screen. */
import { useContext } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { countOf } from '../lib/verdict.ts';
import { Names, type Naming, Who } from './agent.tsx';
import { State, T, When } from './basics.tsx';
import { type Column, Table } from './table.tsx';

type Agents = Output<'agentsList'>;
export type Agent = Agents['agents'][number];

function OnNetwork({ agent }: { readonly agent: Agent }) {
  const { published, status, replicas, next_republish_estimate: next } = agent;
  return (
    <>
      <State tone={published ? 'good' : status === 'pending' ? 'off' : 'warn'}>
        {t(published ? 'agent.published' : 'agent.unpublished')}
      </State>
      {published && (
        <small>
          {t('agent.replicas', { n: replicas })}
          {next !== null && (
            <>
              {' · '}
              <T k="agent.renews" when={<When at={next} ago />} />
            </>
          )}
        </small>
      )}
    </>
  );
}

export function ServiceState({ agent }: { readonly agent: Agent }) {
  const { service_tcp: address, service_tcp_ok: isUp } = agent;
  if (address === '') return <State tone="off">{t('service.none')}</State>;
  return (
    <>
      <State tone={isUp ? 'good' : 'bad'}>{address}</State>{' '}
      <small>{t(isUp ? 'service.answers' : 'service.silent')}</small>
    </>
  );
}

/** Names of the optional columns. */
export const CHOICE = ['network', 'service', 'offers', 'callers', 'waiting'] as const;

/** The agents with the most serious problems come first. */
function rankOf({ published, service_tcp, service_tcp_ok }: Agent): number {
  return (published ? 2 : 0) + (service_tcp === '' || service_tcp_ok ? 1 : 0);
}

function columns(
  pending: Agents['pending'],
  names: ReadonlyMap<string, Naming>,
): readonly (Column<Agent> & { readonly name: string })[] {
  return [
    {
      name: 'name',
      title: t('agent'),
      by: ({ aid }) => (names.get(aid)?.text ?? aid).toLowerCase(),
      cell: (agent) => <Who aid={agent.aid} />,
    },
    {
      name: 'network',
      title: t('agent.network'),
      by: rankOf,
      cell: (agent) => <OnNetwork agent={agent} />,
    },
    {
      name: 'service',
      title: t('service'),
      by: ({ service_tcp, service_tcp_ok }) => (service_tcp === '' ? 2 : service_tcp_ok ? 1 : 0),
      cell: (agent) => <ServiceState agent={agent} />,
    },
    {
      name: 'offers',
      title: t('agent.offers'),
      by: ({ services }) => -services.length,
      cell: ({ services }) =>
        services.length === 0 ? (
          <span class="soft">{t('agent.nothing')}</span>
        ) : (
          services.map((name) => (
            <span key={name} class="chip">
              {name}
            </span>
          ))
        ),
    },
    {
      name: 'callers',
      title: t('agent.callers'),
      by: ({ acl }) => (acl?.default === 'public' ? Number.MAX_SAFE_INTEGER : (acl?.allow.length ?? 0)),
      cell: ({ acl }) =>
        acl !== undefined && t(acl.default === 'public' ? 'acl.public' : 'acl.named', { n: acl.allow.length }),
    },
    {
      name: 'waiting',
      title: t('agent.waiting'),
      isNumber: true,
      by: ({ aid }) => -countOf(pending?.[aid]),
      cell: ({ aid }) => {
        const sum = countOf(pending?.[aid]);
        return sum === 0 ? <span class="soft">–</span> : t('waiting.count', { n: sum });
      },
    },
  ];
}

interface TableProps {
  readonly agents: readonly Agent[];
  readonly pending: Agents['pending'];
  /** Hidden columns. */
  readonly without?: readonly string[];
}

export function AgentsTable({ agents, pending, without = [] }: TableProps) {
  const names = useContext(Names);
  const shown = columns(pending, names).filter(({ name }) => !without.includes(name));
  return <Table label={t('agents.own')} rows={agents} columns={shown} keyOf={({ aid }) => aid} />;
}
