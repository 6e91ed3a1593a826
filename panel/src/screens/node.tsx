/** The node itself. */
import { loadFindingTexts, loadSettingTexts } from '../lib/daemon-texts.ts';
import { loadNetwork, loadTexts, t } from '../lib/i18n.ts';
import { here } from '../lib/place.ts';
import { Later } from '../parts/later.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { Admin } from './node/admin.tsx';
import { Book } from './node/book.tsx';
import { Contacts } from './node/contacts.tsx';
import { Doctor } from './node/doctor.tsx';
import { Happenings } from './node/happenings.tsx';
import { Log } from './node/log.tsx';
import { Links, Peers } from './node/peers.tsx';
import { Sessions } from './node/sessions.tsx';
import { Settings } from './node/settings.tsx';
import { StateOfNode } from './node/state.tsx';
import { Update } from './node/update.tsx';

const TABS = [
  'state',
  'doctor',
  'links',
  'peers',
  'contacts',
  'events',
  'log',
  'settings',
  'update',
  'admin',
  'book',
  'sessions',
] as const;
type Tab = (typeof TABS)[number];
type Query = Readonly<Record<string, string>>;

/** Pages that only programs on the machine of the node may see. */
const AT_HOME: ReadonlySet<Tab> = new Set(['log', 'sessions']);

const loadDoctor = async () => {
  await loadTexts(loadFindingTexts);
  return Doctor;
};
const loadContacts = async () => {
  await loadTexts(loadNetwork);
  return Contacts;
};
const loadSettings = async () => {
  await loadTexts(loadSettingTexts);
  return Settings;
};

function Page({ tab, query }: { readonly tab: Tab; readonly query: Query }) {
  switch (tab) {
    case 'state':
      return <StateOfNode />;
    case 'doctor':
      return <Later load={loadDoctor} props={{}} />;
    case 'links':
      return <Links />;
    case 'peers':
      return <Peers />;
    case 'contacts':
      return <Later load={loadContacts} props={{}} />;
    case 'events':
      return <Happenings q={query['q']} />;
    case 'log':
      return <Log q={query['q']} level={query['level']} />;
    case 'settings':
      return <Later load={loadSettings} props={{ q: query['q'] }} />;
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
  const tabs = TABS.filter((one) => here().node === null || !AT_HOME.has(one));
  const tab = tabs.find((one) => one === path[0]) ?? 'state';
  return (
    <>
      <h1>{t('area.node')}</h1>
      <Tabs
        label={t('area.node')}
        tabs={tabs.map((one) => ({
          title: t(`node.${one}`),
          path: one === 'state' ? ['node'] : ['node', one],
          isCurrent: one === tab,
        }))}
      />
      <Page tab={tab} query={query} />
    </>
  );
}
