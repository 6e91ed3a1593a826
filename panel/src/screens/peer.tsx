/** A remote agent: endpoints, profile, calls. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { MAX_PROVIDERS } from '../../../src/foundation/domain/directory.ts';
import type { Output } from '../lib/api.ts';
import { asFailure, type Failure } from '../lib/failure.ts';
import * as format from '../lib/format.ts';
import { type Key, language, t } from '../lib/i18n.ts';
import { natText } from '../lib/nat.ts';
import { type Offer, offersOf, seenOffers, servicesToAsk } from '../lib/offers.ts';
import { go, here, viewNode } from '../lib/place.ts';
import { perform, useQuery } from '../lib/query.ts';
import { Called, Mark, WholeAid } from '../parts/agent.tsx';
import { Answer, Copy, Section, State, T, UntrustedText, When } from '../parts/basics.tsx';
import { useCaller } from '../parts/caller.tsx';
import { act, Dialog, openDialog } from '../parts/overlay.tsx';
import { InBook } from './discover/book.tsx';
import { RequestConsole } from './request-console.tsx';

interface Looked {
  readonly value: Output<'resolve'> | undefined;
  readonly failure: Failure | undefined;
}

function Ways({ aid }: { readonly aid: string }) {
  const [ping, setPing] = useState<Output<'pingAgent'>>();
  const ways = useQuery('netcheckAgent', { aid });
  return (
    <Section title={t('peer.ways')}>
      <Answer of={ways}>
        {({ node, connection, ways: all, not_direct }) => (
          <>
            <p>
              {t('peer.node')} <WholeAid aid={node} />
            </p>
            <p class="empty">
              {connection === null ? (
                t('peer.nolink')
              ) : (
                <State tone={connection.is_relayed ? 'warn' : 'good'}>
                  {t(`path.${connection.path}`)} · {format.ms(connection.rtt_ms, language)} · {connection.remote_addr}
                </State>
              )}
            </p>
            <ul class="rows">
              {all.map(({ path, to, may_lead }, i) => (
                <li key={i}>
                  <State tone={may_lead === false ? 'off' : 'good'}>{t(`path.${path}`)}</State>
                  <code class="grow">{to.join(', ')}</code>
                </li>
              ))}
            </ul>
            {not_direct !== null && <p class="soft">{t(`notdirect.${not_direct.code}`)}</p>}
          </>
        )}
      </Answer>
      <div class="acts">
        <button
          type="button"
          onClick={() =>
            act(async () => {
              setPing(await perform('pingAgent', { aid }));
            })
          }
        >
          {t('peer.ping')}
        </button>
        {ping !== undefined && (
          <span role="status">
            {t('peer.pinged', { n: ping.received, sent: ping.sent })}
            {ping.rtt_ms !== null && ` · ${format.ms(ping.rtt_ms.avg, language)}`}
          </span>
        )}
      </div>
    </Section>
  );
}

function Says({ aid }: { readonly aid: string }) {
  const records = useQuery('resolveRecords', { aid });
  return (
    <Section title={t('peer.says')}>
      <Answer of={records}>
        {({ records: all }) => {
          const profile = all.find((record) => record.profile !== undefined)?.profile;
          if (profile === undefined) return <p class="empty">{t('peer.silent')}</p>;
          return (
            <dl class="pairs">
              <dt>{t('profile.name')}</dt>
              <dd>
                “<UntrustedText text={profile.name ?? ''} />”
              </dd>
              <dt>{t('profile.brief')}</dt>
              <dd>
                <UntrustedText text={profile.brief ?? ''} />
              </dd>
              <dt>{t('profile.skills')}</dt>
              <dd>
                <UntrustedText text={(profile.skills ?? []).join(', ')} />
              </dd>
              <dt>{t('profile.protocols')}</dt>
              <dd>
                <UntrustedText text={(profile.protocols ?? []).join(', ')} />
              </dd>
            </dl>
          );
        }}
      </Answer>
    </Section>
  );
}

function Offered({ offers }: { readonly offers: readonly Offer[] }) {
  if (offers.length === 0) return null;
  return (
    <Section title={t('peer.offers')}>
      <ul class="rows">
        {offers.map(({ service, name, brief, protocols, tags }) => (
          <li key={service}>
            <span class="grow">
              <b>{service}</b>{' '}
              {name !== '' && (
                <>
                  “<UntrustedText text={name} />”{' '}
                </>
              )}
              <UntrustedText text={brief} />
            </span>
            {[...protocols, ...tags].map((label) => (
              <span key={label} class="chip">
                <UntrustedText text={label} />
              </span>
            ))}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Asked({ aid, services }: { readonly aid: string; readonly services: string[] }) {
  const { value } = useQuery('discover', { services, limit: MAX_PROVIDERS });
  return <Offered offers={offersOf(aid, value?.entries ?? [], seenOffers.of(aid, Date.now()))} />;
}

/** The network can find the agents of a service, but not the services of an agent. */
function Offers({ aid }: { readonly aid: string }) {
  const { value: book } = useQuery('addressBookGet', {});
  const { value: published } = useQuery('resolveRecords', { aid });
  const skills = published?.records.flatMap(({ profile }) => profile?.skills ?? []) ?? [];
  const starred = book?.favorites.flatMap((one) => (one.aid === aid ? [one.skill] : [])) ?? [];
  const seen = seenOffers.of(aid, Date.now()).map(({ service }) => service);
  const services = servicesToAsk([...seen, ...starred, ...skills]);
  return services.length === 0 ? null : <Asked aid={aid} services={services} />;
}

interface Local {
  readonly local_aid?: string;
}

/** Shows the local address that leads to the agent. */
function showPlace(title: Key, place: string, link: ComponentChildren): void {
  openDialog((close) => (
    <Dialog title={t(title)} close={close}>
      <p>
        <T k="tunnel.opened.at" listen={<code>{place}</code>} />
      </p>
      <div class="acts">
        <Copy text={place} />
        {link}
        <button type="button" class="main" onClick={close}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  ));
}

async function openTunnel(aid: string, local: Local): Promise<void> {
  const { listen } = await perform('tunnelOpen', { aid, ...local });
  showPlace('tunnel.opened', listen, null);
}

async function openOrigin(aid: string, local: Local): Promise<void> {
  const isHere = here().node === null;
  const { url } = await perform('originOpen', { aid, ...local });
  const link = isHere && (
    <a class="button" href={url} target="_blank" rel="noopener noreferrer">
      {t('open')}
    </a>
  );
  showPlace('origin.opened', url, link);
}

export function Peer({ aid }: { readonly aid: string }) {
  const [looked, setLooked] = useState<Looked>({ value: undefined, failure: undefined });
  useEffect(() => {
    perform('resolve', { aid }).then(
      (value) => setLooked({ value, failure: undefined }),
      (error: unknown) => setLooked({ value: undefined, failure: asFailure(error) }),
    );
  }, [aid]);
  const { base } = here();
  const { local, choice } = useCaller();
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
        <InBook aid={aid} />
        {base === '' && (
          <button type="button" onClick={() => viewNode(aid)}>
            {t('peer.administer')}
          </button>
        )}
      </div>
      <div class="columns">
        <Section title={t('agent.network')}>
          <Answer of={{ ...looked, at: 0 }}>
            {({ endpoints, nat_type, expires_at, timestamp }) => (
              <dl class="pairs">
                <dt>{t('peer.endpoints')}</dt>
                <dd>
                  {endpoints.map((endpoint) => (
                    <code key={endpoint}>{endpoint} </code>
                  ))}
                </dd>
                <dt>{t('fact.nat')}</dt>
                <dd>{natText(nat_type)}</dd>
                <dt>{t('agent.last')}</dt>
                <dd>
                  <When at={timestamp} ago />
                </dd>
                <dt>{t('agent.until')}</dt>
                <dd>
                  <When at={expires_at} />
                </dd>
              </dl>
            )}
          </Answer>
          <div class="acts">
            {choice}
            <button type="button" onClick={() => act(() => openTunnel(aid, local))}>
              {t('tunnel.open')}
            </button>
            <button type="button" onClick={() => act(() => openOrigin(aid, local))}>
              {t('origin.open')}
            </button>
            <a class="button" href={`${base}/aid/${aid}/`} target="_blank" rel="noopener noreferrer">
              {t('peer.gateway')}
            </a>
            <button type="button" onClick={() => go(['messages'], { to: aid })}>
              {t('peer.write')}
            </button>
          </div>
        </Section>
        <Says aid={aid} />
      </div>
      <Offers aid={aid} />
      <Ways aid={aid} />
      <RequestConsole aid={aid} />
    </>
  );
}
