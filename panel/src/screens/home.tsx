/** The home screen: the most serious problem, pending items, the network, the connections. */
import type { Output } from '../lib/api.ts';
import type { Known } from '../lib/cache.ts';
import { t } from '../lib/i18n.ts';
import { natText } from '../lib/nat.ts';
import { href } from '../lib/place.ts';
import { useQuery } from '../lib/query.ts';
import { publicAddress, verdictOf } from '../lib/verdict.ts';
import { Called } from '../parts/agent.tsx';
import { AgentsTable } from '../parts/agents-table.tsx';
import { Answer, Bytes, Empty, Section, T } from '../parts/basics.tsx';
import { JoinButtons } from '../parts/join-buttons.tsx';
import { LinksPicture } from '../parts/links-picture.tsx';
import { Traffic } from '../parts/traffic.tsx';
import { RecentEvents } from './home/recent-events.tsx';
import { PendingItems } from './home/waiting.tsx';

const LINKS_MS = 60_000;

interface HomeProps {
  readonly status: Known<Output<'status'>>;
  readonly agents: Known<Output<'agentsList'>>;
}

function Lead({ status, agents }: { readonly status: Output<'status'>; readonly agents: Output<'agentsList'> }) {
  const { problem, aids } = verdictOf(
    status.network_ready,
    agents.agents,
    Date.now(),
    status.database_rolled_back === true,
  );
  const [aid] = aids;
  const seen = publicAddress(status.observed_addrs);
  return (
    <>
      <h1>
        <T k={`verdict.${problem}`} n={aids.length} agent={aid === undefined ? '' : <Called aid={aid} />} />
      </h1>
      <p class="lead">
        {t(`verdict.${problem}.why`, { n: agents.agents.length })}{' '}
        {status.network_ready && seen !== undefined && <T k="home.seen" address={<code>{seen}</code>} />}{' '}
        {aid !== undefined && (
          <a href={href(['agents', aid])}>
            <T k="home.look" agent={<Called aid={aid} />} />
          </a>
        )}
        {status.exit.error?.message}
        {problem === 'empty' && <a href={href(['new'])}>{t('agent.new')}</a>}
      </p>
    </>
  );
}

function Network({ status, links }: { readonly status: Output<'status'>; readonly links: Known<Output<'nodeLinks'>> }) {
  const current = links.value?.links.filter((link) => link.current) ?? [];
  const relayed = current.filter((link) => link.is_relayed).length;
  return (
    <dl class="facts">
      <div>
        <dt>{t('fact.peers')}</dt>
        <dd>{status.dht_peers + status.dht_clients}</dd>
      </div>
      <div>
        <dt>{t('fact.nat')}</dt>
        <dd>{natText(status.nat_type)}</dd>
      </div>
      <div>
        <dt>{t('fact.links')}</dt>
        <dd>
          {current.length} <small>{t('fact.relayed', { n: relayed })}</small>
        </dd>
      </div>
      <div>
        <dt>{t('fact.tunnels')}</dt>
        <dd>{status.tunnels_active}</dd>
      </div>
      <div>
        <dt>{t('fact.mapping')}</dt>
        <dd>{t(`mapping.${status.port_mapping}`)}</dd>
      </div>
      <div>
        <dt>{t('fact.helped')}</dt>
        <dd>
          {status.relayed.sessions}{' '}
          <small>
            <Bytes count={status.relayed.bytes} />
          </small>
        </dd>
      </div>
    </dl>
  );
}

export function Home({ status, agents }: HomeProps) {
  const links = useQuery('nodeLinks', {}, LINKS_MS);
  const { value } = agents;
  if (status.value === undefined || value === undefined)
    return (
      <>
        <h1>{t('area.home')}</h1>
        {status.value === undefined ? <Answer of={status}>{() => ''}</Answer> : <Answer of={agents}>{() => ''}</Answer>}
      </>
    );
  return (
    <div class={status.failure === undefined ? '' : 'dim'}>
      <Lead status={status.value} agents={value} />
      <div class="columns">
        <PendingItems agents={value.agents} pending={status.value.pending ?? {}} />
        <Section title={t('network')} note={t('now')}>
          <Network status={status.value} links={links} />
          <JoinButtons />
        </Section>
      </div>
      <Traffic />
      <div class="columns">
        <Section title={t('links')} note={t('links.legend')}>
          <Answer of={links}>{({ links: all }) => <LinksPicture links={all.filter((link) => link.current)} />}</Answer>
        </Section>
        <Section title={t('events.title')} note={<a href={href(['node', 'events'])}>{t('events.all')}</a>}>
          <RecentEvents />
        </Section>
      </div>
      <Section title={t('agents.own')} note={<a href={href(['new'])}>{t('agent.new')}</a>}>
        {value.agents.length === 0 ? (
          <Empty text={t('agents.none')}>
            <a class="button" href={href(['new'])}>
              {t('agent.new')}
            </a>
          </Empty>
        ) : (
          <AgentsTable agents={value.agents} pending={value.pending} />
        )}
      </Section>
    </div>
  );
}
