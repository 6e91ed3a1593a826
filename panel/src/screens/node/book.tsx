/** The address book: what agents elsewhere are called here. */
import { t } from '../../lib/i18n.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Who } from '../../parts/agent.tsx';
import { Answer, Empty } from '../../parts/basics.tsx';
import { actLater } from '../../parts/overlay.tsx';

export function Book() {
  const book = useQuery('addressBookGet', {});
  return (
    <Answer of={book}>
      {({ aliases, favorites }) => {
        const aids = [...new Set([...Object.keys(aliases), ...favorites.map(({ aid }) => aid)])];
        if (aids.length === 0) return <Empty text={t('book.none')} />;
        const without = (gone: string) => ({
          aliases: Object.fromEntries(Object.entries(aliases).filter(([aid]) => aid !== gone)),
          favorites: favorites
            .filter(({ aid }) => aid !== gone)
            .map(({ aid, skill, protocols, addedAt }) => ({ aid, skill, protocols, addedAt })),
        });
        return (
          <ul class="rows">
            {aids.map((aid) => (
              <li key={aid}>
                <span class="grow">
                  <Who aid={aid} />
                </span>
                {favorites.some((favorite) => favorite.aid === aid) && <span title={t('book.star')}>★</span>}
                <button
                  type="button"
                  onClick={() => actLater(() => perform('addressBookPut', without(aid)), t('book.removing'))}
                >
                  {t('remove')}
                </button>
              </li>
            ))}
          </ul>
        );
      }}
    </Answer>
  );
}
