/** Remote agents with a label or a star: buttons and a list. */
import { useState } from 'preact/hooks';
import { type Book, setLabel, setStar } from '../../lib/book.ts';
import { t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Field, Section } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';
import { act, openDialog } from '../../parts/overlay.tsx';

function isStarred(book: Book, aid: string): boolean {
  return book.favorites.some((favorite) => favorite.aid === aid);
}

interface NameProps {
  readonly aid: string;
  readonly book: Book;
  readonly close: () => void;
}

function Name({ aid, book, close }: NameProps) {
  const [alias, setAlias] = useState(book.aliases[aid] ?? '');
  return (
    <FormDialog
      title={t('book.name')}
      verb={t('save')}
      close={close}
      fields={['aliases']}
      run={() => setLabel(aid, alias.trim())}
      done={t('saved')}
    >
      <Field label={t('book.alias')} name="aliases" value={alias} onInput={setAlias} />
    </FormDialog>
  );
}

/** Buttons that star and label an agent. */
export function InBook({ aid }: { readonly aid: string }) {
  const { value: book } = useQuery('addressBookGet', {});
  if (book === undefined) return null;
  const isStar = isStarred(book, aid);
  return (
    <>
      <button type="button" aria-pressed={isStar} onClick={() => act(() => setStar(aid, !isStar), t('saved'))}>
        {isStar ? '★' : '☆'} {t('book.star')}
      </button>
      <button type="button" onClick={() => openDialog((close) => <Name aid={aid} book={book} close={close} />)}>
        {t('book.name')}
      </button>
    </>
  );
}

/** Most agents to show in a list. "People" shows all. */
const SHOWN = 100;

interface BookAgentsProps {
  readonly title: string;
  readonly aids: readonly string[];
}

/** Agents with their buttons. Nothing if there are none. */
export function BookAgents({ title, aids }: BookAgentsProps) {
  if (aids.length === 0) return null;
  return (
    <Section title={title} note={t('discover.count', { n: aids.length })}>
      <ul class="rows">
        {aids.slice(0, SHOWN).map((aid) => (
          <li key={aid}>
            <span class="grow">
              <Who aid={aid} />
            </span>
            <InBook aid={aid} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The starred agents, shown before a search. */
export function Starred() {
  const { value: book } = useQuery('addressBookGet', {});
  return <BookAgents title={t('discover.stars')} aids={book?.favorites.map(({ aid }) => aid) ?? []} />;
}
