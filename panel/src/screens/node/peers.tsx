/** The known nodes, and the connected ones. */
import type { Output } from '../../lib/api.ts';
import * as format from '../../lib/format.ts';
import { language, t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Bytes, Empty, State, When } from '../../parts/basics.tsx';
import { type Column, Table } from '../../parts/table.tsx';

const PEERS_MS = 30_000;

type Peer = Output<'nodePeers'>['peers'][number];
type Link = Output<'nodeLinks'>['links'][number];

const peerColumns = (): readonly Column<Peer>[] => [
  { title: t('node.address'), cell: ({ address }) => <code>{address}</code> },
  { title: t('area.node'), cell: ({ node }) => (node === null ? '–' : <Who aid={node} plain />) },
  { title: t('rtt'), cell: ({ rtt_ms }) => (rtt_ms === null ? '–' : format.ms(rtt_ms, language)), isNumber: true },
  { title: t('node.since'), cell: ({ since }) => <When at={since} /> },
  { title: t('node.seen'), cell: ({ last_seen }) => <When at={last_seen} ago /> },
  {
    title: t('node.role'),
    cell: ({ is_bootstrap, is_helper }) => (is_helper ? t('node.helper') : is_bootstrap ? t('node.bootstrap') : ''),
  },
];

export function Peers() {
  const peers = useQuery('nodePeers', {}, PEERS_MS);
  return (
    <Answer of={peers}>
      {({ peers: all }) =>
        all.length === 0 ? (
          <Empty text={t('node.alone')} />
        ) : (
          <Table label={t('node.peers')} rows={all} columns={peerColumns()} keyOf={({ address }) => address} />
        )
      }
    </Answer>
  );
}

const linkColumns = (): readonly Column<Link>[] => [
  {
    title: t('links.with'),
    cell: ({ node, agents }) =>
      agents.length === 0 ? (
        <Who aid={node} plain />
      ) : (
        agents.map(({ aid }) => (
          <div key={aid}>
            <Who aid={aid} />
          </div>
        ))
      ),
  },
  {
    title: t('tunnel.path'),
    cell: ({ path, is_relayed, remote_addr, current }) => (
      <>
        <State tone={!current ? 'off' : is_relayed ? 'warn' : 'good'}>{t(`path.${path}`)}</State>
        <small>
          <code>{remote_addr}</code>
        </small>
      </>
    ),
  },
  { title: t('rtt'), cell: ({ rtt_ms }) => format.ms(rtt_ms, language), isNumber: true },
  {
    title: t('tunnel.bytes'),
    cell: ({ bytes_up, bytes_down }) => (
      <>
        ↑ <Bytes count={bytes_up} /> ↓ <Bytes count={bytes_down} />
      </>
    ),
  },
  { title: t('node.since'), cell: ({ since }) => <When at={since} /> },
];

export function Links() {
  const links = useQuery('nodeLinks', {}, PEERS_MS);
  return (
    <Answer of={links}>
      {({ links: all }) =>
        all.length === 0 ? (
          <Empty text={t('links.none')} />
        ) : (
          <Table
            label={t('links')}
            rows={all}
            columns={linkColumns()}
            keyOf={({ node, since, remote_addr }) => `${node} ${since} ${remote_addr}`}
          />
        )
      }
    </Answer>
  );
}
