/** Remote agents with a label or a star: buttons and a list. */
import { useState } from 'preact/hooks';
import { type Book, setLabel, setStar } from '../../lib/book.ts';
import { t } from '../../lib/i18n.ts';
import { useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Field, Section } from '../../parts/basics.tsx';
import { act, Dialog, openDialog } from '../../parts/overlay.tsx';

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
    <Dialog title={t('book.name')} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          act(() => setLabel(aid, alias.trim()), t('saved'));
        }}
      >
        <Field label={t('book.alias')} value={alias} onInput={setAlias} />
        <div class="acts">
          <button type="button" onClick={close}>
            {t('cancel')}
          </button>
          <button type="submit" class="main">
            {t('save')}
          </button>
        </div>
      </form>
    </Dialog>
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

/** The starred agents, shown before a search. */
export function Starred() {
  const { value: book } = useQuery('addressBookGet', {});
  if (book === undefined || book.favorites.length === 0) return null;
  return (
    <Section title={t('discover.stars')} note={t('discover.count', { n: book.favorites.length })}>
      <ul class="rows">
        {book.favorites.map(({ aid }) => (
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
