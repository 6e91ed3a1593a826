/** The address book: labels of remote agents. */
import { useContext, useState } from 'preact/hooks';
import { type Book as Known, removeFromBook, setLabel } from '../../lib/book.ts';
import { t } from '../../lib/i18n.ts';
import { shortAid } from '../../lib/mark.ts';
import { here } from '../../lib/place.ts';
import { useQuery } from '../../lib/query.ts';
import { Names, Who } from '../../parts/agent.tsx';
import { AidField } from '../../parts/aid-field.tsx';
import { Answer, Empty, Field } from '../../parts/basics.tsx';
import { FormDialog } from '../../parts/form.tsx';
import { actLater, openDialog } from '../../parts/overlay.tsx';

interface NameProps {
  /** Empty for a new agent. */
  readonly aid: string;
  readonly alias: string;
  readonly close: () => void;
}

function Name({ aid: given, alias: before, close }: NameProps) {
  const [aid, setAid] = useState(given);
  const [alias, setAlias] = useState(before);
  return (
    <FormDialog
      title={t(given === '' ? 'book.add' : 'book.name')}
      verb={t('save')}
      close={close}
      fields={['aid', 'aliases']}
      isReady={aid !== '' && (given !== '' || alias.trim() !== '')}
      run={() => setLabel(aid, alias.trim())}
      done={t('saved')}
    >
      {given === '' ? (
        <AidField label={t('aid')} value={aid} onInput={setAid} />
      ) : (
        <p>
          <Who aid={given} plain />
        </p>
      )}
      <Field label={t('book.alias')} name="aliases" value={alias} onInput={setAlias} />
    </FormDialog>
  );
}

function Row({ aid, book }: { readonly aid: string; readonly book: Known }) {
  const name = useContext(Names).get(aid)?.text ?? shortAid(aid);
  return (
    <li>
      <span class="grow">
        <Who aid={aid} />
      </span>
      {book.favorites.some((favorite) => favorite.aid === aid) && (
        <span role="img" aria-label={t('book.star')}>
          ★
        </span>
      )}
      <button
        type="button"
        aria-label={`${t('change')} ${name}`}
        onClick={() => openDialog((close) => <Name aid={aid} alias={book.aliases[aid] ?? ''} close={close} />)}
      >
        {t('change')}
      </button>
      <button
        type="button"
        onClick={() => {
          const { base } = here();
          actLater(() => removeFromBook(aid, base), t('book.removing'));
        }}
      >
        {t('remove')}
      </button>
    </li>
  );
}

export function Book() {
  const book = useQuery('addressBookGet', {});
  return (
    <Answer of={book}>
      {(value) => {
        const aids = [...new Set([...Object.keys(value.aliases), ...value.favorites.map(({ aid }) => aid)])];
        return (
          <>
            <div class="acts">
              <button type="button" onClick={() => openDialog((close) => <Name aid="" alias="" close={close} />)}>
                {t('book.add')}
              </button>
            </div>
            {aids.length === 0 && <Empty text={t('book.none')} />}
            <ul class="rows">
              {aids.map((aid) => (
                <Row key={aid} aid={aid} book={value} />
              ))}
            </ul>
          </>
        );
      }}
    </Answer>
  );
}
