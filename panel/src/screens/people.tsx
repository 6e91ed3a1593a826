/** The other agents and nodes of the network: path, last seen, services. */
import { useContext, useEffect, useState } from 'preact/hooks';
import * as format from '../lib/format.ts';
import { language, t } from '../lib/i18n.ts';
import { type AgentRow, agentRows, type NodeRow, nodeRows } from '../lib/people.ts';
import { here, href, keep } from '../lib/place.ts';
import { perform, useQuery } from '../lib/query.ts';
import { Names, type Naming, Who } from '../parts/agent.tsx';
import { Answer, Empty, Section, State, When } from '../parts/basics.tsx';
import { JoinButtons } from '../parts/join-buttons.tsx';
import { type Column, Table } from '../parts/table.tsx';

const LOOK_MS = 30_000;
/** Most agents of this node whose friends are listed. */
const ASKED_AGENTS = 8;
/** Most service names to show per agent. */
const SHOWN_OFFERS = 4;

/** The friends of the agents of this node. */
function useFriends(aids: readonly string[]): readonly string[] {
  const [friends, setFriends] = useState<readonly string[]>([]);
  const asked = aids.slice(0, ASKED_AGENTS);
  useEffect(() => {
    let isWanted = true;
    const { base } = here();
    Promise.all(asked.map((aid) => perform('chatContacts', { aid }, base))).then(
      (all) => {
        if (isWanted) setFriends(all.flatMap((one) => one.friends.map(({ peer }) => peer)));
      },
      () => {},
    );
    return () => {
      isWanted = false;
    };
  }, [asked.join(' ')]);
  return friends;
}

function PathOf({ link }: { readonly link: AgentRow['link'] }) {
  if (link === undefined) return <State tone="off">{t('people.nolink')}</State>;
  return (
    <State tone={link.is_relayed ? 'warn' : 'good'}>
      {t(`path.${link.path}`)} · {format.ms(link.rtt_ms, language)}
    </State>
  );
}

function Seen({ link, seenAt }: Pick<AgentRow, 'link' | 'seenAt'>) {
  if (link !== undefined) return <>{t('now')}</>;
  return seenAt === undefined ? <span class="soft">{t('unknown')}</span> : <When at={seenAt} ago />;
}

const agentColumns = (): readonly Column<AgentRow>[] => [
  { title: t('agent'), cell: ({ aid }) => <Who aid={aid} /> },
  {
    title: t('agent.offers'),
    cell: ({ offers }) => (
      <>
        {offers.length === 0 && <span class="soft">{t('unknown')}</span>}
        {offers.slice(0, SHOWN_OFFERS).map((name) => (
          <a key={name} class="chip" href={href(['discover'], { q: name })}>
            {name}
          </a>
        ))}
        {offers.length > SHOWN_OFFERS && <small>{t('people.more', { n: offers.length - SHOWN_OFFERS })}</small>}
      </>
    ),
  },
  { title: t('tunnel.path'), cell: ({ link }) => <PathOf link={link} /> },
  { title: t('node.seen'), cell: (row) => <Seen {...row} />, isNumber: true },
];

const nodeColumns = (): readonly Column<NodeRow>[] => [
  {
    title: t('area.node'),
    cell: ({ node, address }) =>
      node === '' ? (
        <code>{address}</code>
      ) : (
        <Who aid={node} plain>
          {address}
        </Who>
      ),
  },
  {
    title: t('people.role'),
    cell: ({ isHelper, isBootstrap }) =>
      isHelper ? t('people.helper') : isBootstrap ? t('people.bootstrap') : t('people.peer'),
  },
  { title: t('tunnel.path'), cell: ({ link }) => <PathOf link={link} /> },
  { title: t('node.seen'), cell: (row) => <Seen {...row} />, isNumber: true },
];

function fits(names: ReadonlyMap<string, Naming>, q: string, ...texts: readonly string[]): boolean {
  return [...texts, ...texts.map((text) => names.get(text)?.text ?? '')].join(' ').toLowerCase().includes(q);
}

export function People({ query: { q = '' } }: { readonly query: Readonly<Record<string, string>> }) {
  const names = useContext(Names);
  const links = useQuery('nodeLinks', {}, LOOK_MS);
  const peers = useQuery('nodePeers', {}, LOOK_MS);
  const recent = useQuery('discoverRecent', {}, LOOK_MS);
  const book = useQuery('addressBookGet', {});
  const own = [...names].filter(([, { isHere }]) => isHere).map(([aid]) => aid);
  const friends = useFriends(own);
  const wanted = q.trim().toLowerCase();
  return (
    <>
      <h1>{t('area.people')}</h1>
      <p class="soft">{t('people.what')}</p>
      <div class="acts">
        <input
          type="search"
          aria-label={t('filter')}
          placeholder={t('filter')}
          value={q}
          onInput={(event) => keep({ q: event.currentTarget.value })}
        />
        <JoinButtons />
      </div>
      <Answer of={links}>
        {({ links: all }) => {
          const agents = agentRows({
            links: all,
            recent: recent.value?.entries ?? [],
            book: book.value ?? { aliases: {}, favorites: [] },
            friends,
            own: new Set(own),
          }).filter(({ aid, offers }) => fits(names, wanted, aid, ...offers));
          const nodes = nodeRows(all, peers.value?.peers ?? []).filter(({ node, address }) =>
            fits(names, wanted, node, address),
          );
          return (
            <>
              <Section title={t('area.agents')} note={t('discover.count', { n: agents.length })}>
                {agents.length === 0 ? (
                  <Empty text={t('people.none')} />
                ) : (
                  <Table label={t('area.agents')} rows={agents} columns={agentColumns()} keyOf={({ aid }) => aid} />
                )}
              </Section>
              <Section title={t('people.nodes')} note={t('people.nodes.count', { n: nodes.length })}>
                {nodes.length === 0 ? (
                  <Empty text={t('people.alone')} />
                ) : (
                  <Table
                    label={t('people.nodes')}
                    rows={nodes}
                    columns={nodeColumns()}
                    keyOf={({ node, address }) => `${node} ${address}`}
                  />
                )}
              </Section>
            </>
          );
        }}
      </Answer>
    </>
  );
}
