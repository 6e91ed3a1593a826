/** The frame of the page: the navigation, the status bar and the screen that the hash selects. */
import type { ComponentType } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { Output } from './lib/api.ts';
import type { Known } from './lib/cache.ts';
import * as format from './lib/format.ts';
import { whenHeaded } from './lib/heading.ts';
import { useHeldKey } from './lib/held-key.ts';
import {
  isLanguage,
  LANGUAGES,
  language,
  loadNetwork,
  loadNode,
  loadTalk,
  loadTexts,
  setLanguage,
  t,
} from './lib/i18n.ts';
import { followInvalidations } from './lib/invalidation.ts';
import { listenForShortcuts } from './lib/keyboard.ts';
import { shortAid } from './lib/mark.ts';
import { go, href, isChosen, type Place, pageOf, usePlace, viewNode } from './lib/place.ts';
import { savedTheme, saveLanguage, setTheme, THEMES } from './lib/prefs.ts';
import { refresh, useQuery } from './lib/query.ts';
import { useRedraw } from './lib/redraw.ts';
import { shownText } from './lib/shown-text.ts';
import { countOf } from './lib/verdict.ts';
import { Called, Names, type Naming } from './parts/agent.tsx';
import { T } from './parts/basics.tsx';
import { Later } from './parts/later.tsx';
import { Overlay, openDialog } from './parts/overlay.tsx';
import { Home } from './screens/home.tsx';

const AREAS = ['home', 'agents', 'people', 'discover', 'messages', 'files', 'node'] as const;
/** The areas that a narrow page shows in a menu. */
const IN_MENU: ReadonlySet<Area> = new Set<Area>(['discover', 'files', 'node']);
type Area = (typeof AREAS)[number];

// Below the limit: with the requests of a screen, at most one request in five seconds.
const STATUS_MS = 15_000;
const AGENTS_MS = 30_000;

interface ScreenProps {
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}
type Screen = ComponentType<ScreenProps>;

/** A screen with the texts that only it and a few others need. */
async function withTexts(load: Parameters<typeof loadTexts>[0], screen: Promise<Screen>): Promise<Screen> {
  const [shown] = await Promise.all([screen, loadTexts(load)]);
  return shown;
}

const SCREENS: Readonly<Record<Exclude<Area, 'home'> | 'new', () => Promise<Screen>>> = {
  agents: async () => (await import('./screens/agents.tsx')).Agents,
  discover: () =>
    withTexts(
      loadNetwork,
      import('./screens/discover.tsx').then(({ Discover }) => Discover),
    ),
  people: () =>
    withTexts(
      loadNetwork,
      import('./screens/people.tsx').then(({ People }) => People),
    ),
  messages: () =>
    withTexts(
      loadTalk,
      import('./screens/messages.tsx').then(({ Messages }) => Messages),
    ),
  files: () =>
    withTexts(
      loadTalk,
      import('./screens/files.tsx').then(({ Files }) => Files),
    ),
  node: () =>
    withTexts(
      loadNode,
      import('./screens/node.tsx').then(({ NodeScreen }) => NodeScreen),
    ),
  new: async () => (await import('./screens/new-agent.tsx')).NewAgent,
};

const loadFinder = async () => (await import('./parts/finder.tsx')).Finder;
const loadHelp = async () => (await import('./parts/help.tsx')).Help;
const loadConfirmNode = async () => (await import('./screens/confirm-node.tsx')).ConfirmNode;
const loadLogin = async () => (await import('./screens/login.tsx')).Login;
const showFinder = (close: () => void) => <Later load={loadFinder} props={{ close }} />;
const showHelp = (close: () => void) => <Later load={loadHelp} props={{ close }} />;

function isScreen(name: string): name is keyof typeof SCREENS {
  return Object.hasOwn(SCREENS, name);
}

function useNames(agents: Output<'agentsList'> | undefined, book: Output<'addressBookGet'> | undefined) {
  return useMemo(() => {
    const names = new Map<string, Naming>();
    for (const { aid, name, profile } of agents?.agents ?? []) {
      const text = profile?.name ?? name;
      const isNamed = text !== undefined && text !== '';
      names.set(aid, { text: isNamed ? shownText(text) : shortAid(aid), isMine: true, isHere: true });
    }
    for (const [aid, text] of Object.entries(book?.aliases ?? {}))
      names.set(aid, { text: shownText(text), isMine: true, isHere: names.get(aid)?.isHere === true });
    return names;
  }, [agents, book]);
}

function Top({ status }: { readonly status: Known<Output<'status'>> }) {
  const { value } = status;
  const isReady = value?.network_ready === true;
  return (
    <header class="top">
      {value !== undefined && (
        <span class={`state ${isReady ? 'good' : 'warn'}`}>
          <b>{t(isReady ? 'top.ready' : 'top.offline')}</b>{' '}
          <span class="soft">· {t('top.peers', { n: value.dht_peers + value.dht_clients })}</span>
        </span>
      )}
      <button type="button" class="find" onClick={() => openDialog(showFinder)}>
        <span>{t('find')}</span>
        <kbd>Ctrl K</kbd>
      </button>
    </header>
  );
}

function Offline({ status }: { readonly status: Known<unknown> }) {
  if (status.failure?.code !== 'daemon_unreachable') return null;
  const at = status.at === 0 ? '–' : format.time(status.at, Date.now(), language);
  return (
    <div class="bar bad" role="alert">
      <span>{t('offline', { at })}</span>
      <button type="button" onClick={() => refresh()}>
        {t('again')}
      </button>
    </div>
  );
}

function Foot({ status, changed }: { readonly status: Output<'status'> | undefined; readonly changed: () => void }) {
  return (
    <footer class="foot">
      {status !== undefined && `${status.version} · ${t('up', { span: format.span(status.uptime_s, language) })}`}
      <br />
      {location.host}
      <br />
      <button type="button" class="plain" onClick={() => openDialog(showHelp)}>
        {t('keys')}
      </button>
      <select
        aria-label={t('language')}
        value={language}
        onChange={({ currentTarget: { value } }) => {
          if (!isLanguage(value)) return;
          saveLanguage(value);
          setLanguage(value).then(changed, () => {});
        }}
      >
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
      <select
        aria-label={t('theme')}
        value={savedTheme()}
        onChange={({ currentTarget: { value } }) => {
          setTheme(THEMES.find((theme) => theme === value) ?? 'auto');
          changed();
        }}
      >
        {THEMES.map((theme) => (
          <option key={theme} value={theme}>
            {t(`theme.${theme}`)}
          </option>
        ))}
      </select>
    </footer>
  );
}

interface AreaLinkProps {
  readonly area: Area;
  readonly isCurrent: boolean;
  /** Number of pending items of the agents. */
  readonly waiting: number;
}

function AreaLink({ area, isCurrent, waiting }: AreaLinkProps) {
  return (
    <a
      href={href(area === 'home' ? [] : [area])}
      class={IN_MENU.has(area) ? 'rare' : ''}
      {...(isCurrent ? { 'aria-current': 'page' } : {})}
    >
      <span>{t(`area.${area}`)}</span>
      {area === 'messages' && waiting > 0 ? (
        <span class="badge">
          {waiting}
          <span class="hidden"> {t('waiting')}</span>
        </span>
      ) : (
        <kbd aria-hidden="true">g {area.charAt(0)}</kbd>
      )}
    </a>
  );
}

/** The whole page. */
export function App() {
  const place = usePlace();
  const redraw = useRedraw();
  const { node } = place;
  if (node !== null && !isChosen(node))
    return (
      <Later
        load={loadConfirmNode}
        props={{
          node,
          look: () => {
            viewNode(node, place.path);
            redraw();
          },
        }}
      />
    );
  return <Frame place={place} redraw={redraw} />;
}

interface FrameProps {
  readonly place: Place;
  readonly redraw: () => void;
}

/** The parts around every screen. */
function Frame({ place, redraw }: FrameProps) {
  const status = useQuery('status', {}, STATUS_MS);
  const agents = useQuery('agentsList', {}, AGENTS_MS);
  const book = useQuery('addressBookGet', {});
  const names = useNames(agents.value, book.value);
  const main = useRef<HTMLElement>(null);
  const [first = 'home'] = place.path;
  const area = AREAS.find((one) => one === first) ?? (first === 'new' ? 'agents' : 'home');
  const where = pageOf(place);
  const held = useHeldKey();
  useEffect(
    () =>
      listenForShortcuts({
        go,
        find: () => openDialog(showFinder),
        help: () => openDialog(showHelp),
      }),
    [],
  );
  useEffect(followInvalidations, []);
  useEffect(() => {
    scrollTo(0, 0);
    if (main.current === null) return;
    return whenHeaded(main.current, (heading) => {
      heading.setAttribute('tabindex', '-1');
      heading.focus({ preventScroll: true });
    });
  }, [where]);
  useEffect(() => {
    if (main.current === null) return;
    return whenHeaded(main.current, ({ textContent }) => {
      document.title = `${textContent} · svcd`;
    });
  }, [where, language]);
  if (status.failure?.code === 'unauthorized') return <Later load={loadLogin} props={{}} />;
  const waiting = Object.values(status.value?.pending ?? {}).reduce((sum, counters) => sum + countOf(counters), 0);
  return (
    <Names.Provider value={names}>
      <a
        class="skip button"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.querySelector('h1')?.focus();
        }}
      >
        {t('skip')}
      </a>
      <div class="frame">
        <div class="side">
          <nav class="areas" aria-label={t('areas')}>
            <div class="brand">
              <b>svcd</b>
              <span class="soft">{t('brand')}</span>
            </div>
            {AREAS.map((one) => (
              <AreaLink key={one} area={one} isCurrent={one === area} waiting={waiting} />
            ))}
            <details key={where} class={IN_MENU.has(area) ? 'menu narrow current' : 'menu narrow'}>
              <summary>{t(IN_MENU.has(area) ? `area.${area}` : 'areas.more')}</summary>
              <div>
                {[...IN_MENU].map((one) => (
                  <AreaLink key={one} area={one} isCurrent={one === area} waiting={0} />
                ))}
              </div>
            </details>
          </nav>
          <Foot status={status.value} changed={redraw} />
        </div>
        <Top status={status} />
        <main ref={main} id="main">
          <Offline status={status} />
          {held?.isRestored === false && first !== 'new' && (
            <div class="bar" role="alert">
              <span>{t('held')}</span>
              <a class="button" href={href(['new'])}>
                {t('held.back')}
              </a>
            </div>
          )}
          {place.node !== null && (
            <div class="bar">
              <span>
                <T k="via" node={<Called aid={place.node} />} />
              </span>
              <a class="button" href="#/">
                {t('via.back')}
              </a>
            </div>
          )}
          <div key={where}>
            {isScreen(first) ? (
              <Later load={SCREENS[first]} props={{ path: place.path.slice(1), query: place.query }} />
            ) : (
              <Home status={status} agents={agents} />
            )}
          </div>
        </main>
      </div>
      <Overlay />
    </Names.Provider>
  );
}
