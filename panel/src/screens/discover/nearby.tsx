/** Services of other agents without a search: those seen lately, and the agents of the address book. */
import { useContext } from 'preact/hooks';
import type { Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { href } from '../../lib/place.ts';
import { useQuery } from '../../lib/query.ts';
import { Names, Who } from '../../parts/agent.tsx';
import { Empty, Section, UntrustedText, When } from '../../parts/basics.tsx';
import { BookAgents } from './book.tsx';

type Offer = Output<'discoverRecent'>['entries'][number];

const LOOK_MS = 30_000;
/** Most agents to show. */
const SHOWN = 20;
/** Most service names to show as links. */
const SHOWN_NAMES = 12;

/** A service name, which starts a search. */
function Service({ name }: { readonly name: string }) {
  return (
    <a class="chip" href={href(['discover'], { q: name })}>
      {name}
    </a>
  );
}

/** The name and the descriptions of an agent. All its services often have the same ones. */
function Brief({ offers }: { readonly offers: readonly Offer[] }) {
  const name = offers.find((offer) => offer.name !== '')?.name;
  const briefs = [...new Set(offers.map(({ brief }) => brief))].filter((brief) => brief !== '');
  return (
    <>
      {name !== undefined && (
        <b>
          “<UntrustedText text={name} />”{' '}
        </b>
      )}
      <UntrustedText text={briefs.join(' · ')} />
    </>
  );
}

/** Services of other agents that this node has seen lately. */
export function RecentServices() {
  const names = useContext(Names);
  const { value } = useQuery('discoverRecent', {}, LOOK_MS);
  if (value === undefined) return null;
  const entries = value.entries.filter(({ aid }) => names.get(aid)?.isHere !== true);
  const services = [...new Set(entries.map(({ service }) => service))].toSorted();
  const agents = Map.groupBy(entries, ({ aid }): string => aid);
  return (
    <Section title={t('nearby.services')} note={t('nearby.count', { n: services.length })}>
      {entries.length === 0 && <Empty text={t('nearby.none')} />}
      {services.length > 1 && (
        <p class="shown">
          {services.slice(0, SHOWN_NAMES).map((service) => (
            <Service key={service} name={service} />
          ))}
        </p>
      )}
      <ul class="rows">
        {[...agents].slice(0, SHOWN).map(([aid, offers]) => (
          <li key={aid}>
            <span class="grow">
              <Who aid={aid} />
              <p>
                <Brief offers={offers} />
              </p>
              {offers.map(({ service }) => (
                <Service key={service} name={service} />
              ))}
            </span>
            <small>
              <When at={offers[0]?.published_at ?? ''} ago />
            </small>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Agents with a label that are not on this node. */
export function LabeledAgents() {
  const names = useContext(Names);
  const { value: book } = useQuery('addressBookGet', {});
  const starred = new Set<string>(book?.favorites.map(({ aid }) => aid));
  const aids = Object.keys(book?.aliases ?? {}).filter((aid) => names.get(aid)?.isHere !== true && !starred.has(aid));
  return <BookAgents title={t('nearby.labeled')} aids={aids} />;
}
