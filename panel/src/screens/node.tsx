/** The node itself. */
import { t } from '../lib/i18n.ts';
import { href } from '../lib/place.ts';
import { Admin } from './node/admin.tsx';
import { Book } from './node/book.tsx';
import { Happenings } from './node/happenings.tsx';
import { Links, Peers } from './node/peers.tsx';
import { Sessions } from './node/sessions.tsx';
import { Settings } from './node/settings.tsx';
import { StateOfNode } from './node/state.tsx';
import { Update } from './node/update.tsx';

const TABS = ['state', 'links', 'peers', 'events', 'settings', 'update', 'admin', 'book', 'sessions'] as const;
type Tab = (typeof TABS)[number];
type Query = Readonly<Record<string, string>>;

function Page({ tab, query }: { readonly tab: Tab; readonly query: Query }) {
  switch (tab) {
    case 'state':
      return <StateOfNode />;
    case 'links':
      return <Links />;
    case 'peers':
      return <Peers />;
    case 'events':
      return <Happenings q={query['q']} />;
    case 'settings':
      return <Settings />;
    case 'update':
      return <Update />;
    case 'admin':
      return <Admin />;
    case 'book':
      return <Book />;
    case 'sessions':
      return <Sessions />;
  }
}

export function NodeScreen({ path, query }: { readonly path: readonly string[]; readonly query: Query }) {
  const tab = TABS.find((one) => one === path[0]) ?? 'state';
  return (
    <>
      <h1>{t('area.node')}</h1>
      <nav class="tabs" aria-label={t('area.node')}>
        {TABS.map((one) => (
          <a
            key={one}
            href={href(one === 'state' ? ['node'] : ['node', one])}
            {...(one === tab ? { 'aria-current': 'page' } : {})}
          >
            {t(`node.${one}`)}
          </a>
        ))}
      </nav>
      <Page tab={tab} query={query} />
    </>
  );
}
