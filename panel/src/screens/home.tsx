/** Home: the worst true thing first, then what waits, how the network is, who talks to whom. */
import { useEffect, useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import type { Known } from '../lib/cache.ts';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { type LiveEvent, onEvent } from '../lib/live.ts';
import { href } from '../lib/place.ts';
import { useQuery } from '../lib/query.ts';
import { verdictOf, type Waiting, waitingOf } from '../lib/verdict.ts';
import { Called } from '../parts/agent.tsx';
import { AgentsTable } from '../parts/agents-table.tsx';
import { Answer, Bytes, Empty, Section, T, When } from '../parts/basics.tsx';
import { LinksPicture } from '../parts/links-picture.tsx';
import { Traffic } from '../parts/traffic.tsx';

const LINKS_MS = 30_000;
/** Events that home shows. */
const SHOWN_EVENTS = 6;

interface HomeProps {
  readonly status: Known<Output<'status'>>;
  readonly agents: Known<Output<'agentsList'>>;
}

function Lead({ status, agents }: { readonly status: Output<'status'>; readonly agents: Output<'agentsList'> }) {
  const { problem, aids } = verdictOf(status.network_ready, agents.agents, Date.now());
  const [aid] = aids;
  const seen = status.observed_addrs[0] ?? status.listen_addrs[0];
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
        {problem === 'empty' && <a href={href(['new'])}>{t('agent.new')}</a>}
      </p>
    </>
  );
}

const SIGNS = { invites: '?', unread: '●', notes: '✉', ending: '!', expired: '✕' } as const;
const TONES = { invites: 'hue', unread: 'hue', notes: 'hue', ending: 'warn', expired: 'bad' } as const;

function WaitingRow({ kind, aid, n }: Waiting) {
  const isKey = kind === 'ending' || kind === 'expired';
  const path = isKey ? ['agents', aid, 'keys'] : ['messages', aid, ...(kind === 'notes' ? ['notes'] : [])];
  return (
    <li>
      <b class={TONES[kind]} aria-hidden="true">
        {SIGNS[kind]}
      </b>
      <span class="grow">
        <T
          k={`waiting.${kind}`}
          n={isKey ? 0 : n}
          agent={<Called aid={aid} />}
          span={format.span(n / 1000, language)}
        />
      </span>
      <a class="button" href={href(path)}>
        {t(isKey ? 'key.renew' : 'read')}
      </a>
    </li>
  );
}

function Network({ status, links }: { readonly status: Output<'status'>; readonly links: Known<Output<'nodeLinks'>> }) {
  const current = links.value?.links.filter((link) => link.current) ?? [];
  const relayed = current.filter((link) => link.is_relayed).length;
  return (
    <dl class="facts">
      <div>
        <dt>{t('fact.peers')}</dt>
        <dd>{status.dht_peers}</dd>
      </div>
      <div>
        <dt>{t('fact.nat')}</dt>
        <dd>{status.nat_type_label}</dd>
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
        <dd>{status.port_mapping}</dd>
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

let recent: readonly LiveEvent[] = [];

function JustNow() {
  const [events, setEvents] = useState(recent);
  useEffect(
    () =>
      onEvent((event) => {
        recent = [event, ...recent].slice(0, SHOWN_EVENTS);
        setEvents(recent);
      }),
    [],
  );
  if (events.length === 0) return <Empty text={t('events.none')} />;
  return (
    <ul class="rows">
      {events.map(({ at, aid, type }, i) => (
        <li key={i}>
          <span class="mono soft">
            <When at={at} />
          </span>
          <span>
            <Called aid={aid} /> {type}
          </span>
        </li>
      ))}
    </ul>
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
  const waiting = waitingOf(value.agents, status.value.pending ?? {}, Date.now());
  return (
    <div class={status.failure === undefined ? '' : 'dim'}>
      <Lead status={status.value} agents={value} />
      <div class="columns">
        <Section title={t('waiting.title')} note={t('waiting.things', { n: waiting.length })}>
          {waiting.length === 0 ? (
            <Empty text={t('waiting.none')} />
          ) : (
            <ul class="rows">
              {waiting.map((one) => (
                <WaitingRow key={`${one.kind} ${one.aid}`} {...one} />
              ))}
            </ul>
          )}
        </Section>
        <Section title={t('network')} note={t('now')}>
          <Network status={status.value} links={links} />
        </Section>
      </div>
      <Traffic />
      <div class="columns">
        <Section title={t('links')} note={t('links.legend')}>
          <Answer of={links}>{({ links: all }) => <LinksPicture links={all.filter((link) => link.current)} />}</Answer>
        </Section>
        <Section title={t('events.title')}>
          <JustNow />
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
