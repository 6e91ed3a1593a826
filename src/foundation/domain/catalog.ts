/** Catalogs of agents for programs of others: AI Catalog 1.0 and Agentic Resource Discovery 0.9. */

/** Results of a page of a search, unless the request says otherwise; what the specification says. */
export const SEARCH_PAGE_DEFAULT = 10;
/** Most results of a page; what the specification says. */
export const MAX_SEARCH_PAGE = 100;
/** Longest text of a search, characters. */
export const MAX_SEARCH_TEXT_CHARS = 1000;
/** Fields that a search filters by, and values of each. */
export const MAX_FILTER_FIELDS = 16;
export const MAX_FILTER_VALUES = 32;
/** Agents here that the catalog shows, the first registered ones. */
export const MAX_CATALOG_AGENTS = 1000;
/** Score of what fits a text whole; the specification's. */
export const MAX_SCORE = 100;
