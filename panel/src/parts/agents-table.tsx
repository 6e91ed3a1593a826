/** The agents of a node, as home and the list of agents show them. */
import type { Output } from '../lib/api.ts';
import { t } from '../lib/i18n.ts';
import { countOf } from '../lib/verdict.ts';
import { Who } from './agent.tsx';
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
      <State tone={isUp ? 'good' : 'bad'}>{address}</State>
      <small>{t(isUp ? 'service.answers' : 'service.silent')}</small>
    </>
  );
}

function columns(pending: Agents['pending']): readonly Column<Agent>[] {
  return [
    { title: t('agent'), cell: (agent) => <Who aid={agent.aid} /> },
    { title: t('agent.network'), cell: (agent) => <OnNetwork agent={agent} /> },
    { title: t('service'), cell: (agent) => <ServiceState agent={agent} /> },
    {
      title: t('agent.offers'),
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
      title: t('agent.callers'),
      cell: ({ acl }) =>
        acl !== undefined && t(acl.default === 'public' ? 'acl.public' : 'acl.named', { n: acl.allow.length }),
    },
    {
      title: t('agent.waiting'),
      isNumber: true,
      cell: ({ aid }) => {
        const sum = countOf(pending?.[aid]);
        return sum === 0 ? <span class="soft">–</span> : t('waiting.count', { n: sum });
      },
    },
  ];
}

export function AgentsTable({
  agents,
  pending,
}: {
  readonly agents: readonly Agent[];
  readonly pending: Agents['pending'];
}) {
  return <Table label={t('agents.own')} rows={agents} columns={columns(pending)} keyOf={({ aid }) => aid} />;
}
