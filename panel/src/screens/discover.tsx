/** Finds agents by service name or by AID. */
import { useEffect, useState } from 'preact/hooks';
import type { Output } from '../lib/api.ts';
import { asFailure, type Failure } from '../lib/failure.ts';
import { t } from '../lib/i18n.ts';
import { listOf } from '../lib/lists.ts';
import { seenOffers } from '../lib/offers.ts';
import { go, keep } from '../lib/place.ts';
import { perform } from '../lib/query.ts';
import { Who } from '../parts/agent.tsx';
import { Answer, Empty, Section, UntrustedText } from '../parts/basics.tsx';
import { InBook, Starred } from './discover/book.tsx';
import { LabeledAgents, RecentServices } from './discover/nearby.tsx';
import { Peer } from './peer.tsx';

const AID = /^(aid1|0x|bc1|pr1)/i;

interface Props {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

type Entry = Output<'discover'>['entries'][number];

function Found({ entry }: { readonly entry: Entry }) {
  return (
    <li>
      <span class="grow">
        <Who aid={entry.aid} />
        <p>
          {entry.name !== '' && (
            <b>
              “<UntrustedText text={entry.name} />”
            </b>
          )}{' '}
          <UntrustedText text={entry.brief} />
        </p>
        <span class="chip">{entry.service}</span>
        {[...entry.protocols, ...entry.tags].map((tag) => (
          <span key={tag} class="chip">
            <UntrustedText text={tag} />
          </span>
        ))}
      </span>
      <InBook aid={entry.aid} />
    </li>
  );
}

export function Discover({ path: [aid], query: { q = '' } }: Props) {
  const [text, setText] = useState(q);
  const [found, setFound] = useState<{
    readonly value: readonly Entry[] | undefined;
    readonly failure: Failure | undefined;
  }>();
  useEffect(() => setText(q), [q]);
  useEffect(() => {
    if (q === '') return;
    let isAsked = true;
    const show: typeof setFound = (answer) => {
      if (isAsked) setFound(answer);
    };
    show({ value: undefined, failure: undefined });
    perform('discover', { services: listOf(q) }).then(
      ({ entries }) => {
        seenOffers.note(entries);
        show({ value: entries, failure: undefined });
      },
      (error: unknown) => show({ value: undefined, failure: asFailure(error) }),
    );
    return () => {
      isAsked = false;
    };
  }, [q]);
  if (aid !== undefined) return <Peer aid={aid} />;
  return (
    <>
      <h1>{t('area.discover')}</h1>
      <form
        class="acts seek"
        onSubmit={(event) => {
          event.preventDefault();
          const wanted = text.trim();
          if (AID.test(wanted)) go(['discover', wanted]);
          else keep({ q: wanted });
        }}
      >
        <input
          type="search"
          class="grow"
          aria-label={t('discover.what')}
          placeholder={t('discover.what')}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="main">
          {t('discover.look')}
        </button>
      </form>
      <p class="soft">{t('discover.how')}</p>
      {q === '' && (
        <>
          <Starred />
          <RecentServices />
          <LabeledAgents />
        </>
      )}
      {q !== '' && found !== undefined && (
        <Section
          title={t('discover.found')}
          note={found.value === undefined ? '' : t('discover.count', { n: found.value.length })}
        >
          <Answer of={{ ...found, at: 0 }}>
            {(entries) =>
              entries.length === 0 ? (
                <Empty text={t('discover.none')} />
              ) : (
                <ul class="rows">
                  {entries.map((entry) => (
                    <Found key={`${entry.aid} ${entry.service}`} entry={entry} />
                  ))}
                </ul>
              )
            }
          </Answer>
        </Section>
      )}
    </>
  );
}
