/** Handlers of the AI Catalog and the search. */
import type { Catalog } from '../../capabilities/directory/catalog.ts';
import { SEARCH_PAGE_DEFAULT } from '../../foundation/domain/directory.ts';
import type { catalogOperations } from '../catalog.ts';
import type { Handlers } from '../operation.ts';

export interface CatalogHandlerDependencies {
  readonly catalog: Pick<Catalog, 'manifest' | 'search'>;
}

export function catalogHandlers({ catalog }: CatalogHandlerDependencies): Handlers<typeof catalogOperations> {
  const search: Handlers<typeof catalogOperations>['catalogSearch'] = async (input, { signal }) => {
    const { query, federation, pageSize = SEARCH_PAGE_DEFAULT, pageToken } = input;
    const { text, filter = {} } = query;
    const offset = Number(pageToken ?? 0);
    const { results, next } = await catalog.search({ text, filter, pageSize, offset, signal });
    return {
      results,
      ...(federation === 'referrals' ? { referrals: [] } : {}),
      ...(next === null ? {} : { pageToken: `${next}` }),
    };
  };
  return { catalogGet: () => catalog.manifest(), catalogSearch: search, catalogSearchBelow: search };
}
