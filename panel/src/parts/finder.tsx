/** Finds an agent or a page. */
import { useContext, useState } from 'preact/hooks';
import { type Key, t } from '../lib/i18n.ts';
import { shortAid } from '../lib/mark.ts';
import { go } from '../lib/place.ts';
import { Names } from './agent.tsx';
import { Dialog } from './overlay.tsx';

const PAGES: readonly (readonly [Key, readonly string[]])[] = [
  ['area.home', []],
  ['area.agents', ['agents']],
  ['area.people', ['people']],
  ['area.discover', ['discover']],
  ['area.messages', ['messages']],
  ['area.files', ['files']],
  ['area.node', ['node']],
  ['agent.new', ['new']],
  ['node.doctor', ['node', 'doctor']],
  ['node.settings', ['node', 'settings']],
  ['node.peers', ['node', 'peers']],
  ['node.contacts', ['node', 'contacts']],
  ['node.events', ['node', 'events']],
  ['node.update', ['node', 'update']],
  ['node.admin', ['node', 'admin']],
  ['node.book', ['node', 'book']],
  ['node.sessions', ['node', 'sessions']],
];
const SHOWN = 12;

export function Finder({ close }: { readonly close: () => void }) {
  const [text, setText] = useState('');
  const names = useContext(Names);
  const wanted = text.trim().toLowerCase();
  const agents = [...names].map(([aid, { text: name, isHere }]) => ({
    label: `${name} ${shortAid(aid)}`,
    sought: `${name} ${aid}`,
    path: [isHere ? 'agents' : 'discover', aid],
  }));
  const pages = PAGES.map(([key, path]) => ({ label: t(key), sought: t(key), path }));
  const foreign =
    /^(aid1|0x|bc1)/.test(wanted) && !names.has(wanted)
      ? [{ label: wanted, sought: wanted, path: ['discover', wanted] }]
      : [];
  const found = [...pages, ...agents, ...foreign]
    .filter(({ sought }) => sought.toLowerCase().includes(wanted))
    .slice(0, SHOWN);
  const open = (path: readonly string[]): void => {
    close();
    go(path);
  };
  return (
    <Dialog title={t('find')} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (found[0] !== undefined) open(found[0].path);
        }}
      >
        <label class="field">
          <span>{t('find.hint')}</span>
          <input autofocus value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </form>
      <ul>
        {found.map(({ label, path }) => (
          <li key={path.join('/')}>
            <button type="button" class="plain" onClick={() => open(path)}>
              {label}
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
