/** Catalogs for other programs: AI Catalog 1.0 and Agentic Resource Discovery 0.9. */

/** Default page size of a search, from the specification. */
export const SEARCH_PAGE_DEFAULT = 10;
/** Largest page of a search, from the specification. */
export const MAX_SEARCH_PAGE = 100;
/** Longest text of a search, characters. */
export const MAX_SEARCH_TEXT_CHARS = 1000;
/** Fields of a filter, and values of each. */
export const MAX_FILTER_FIELDS = 16;
export const MAX_FILTER_VALUES = 32;
/** Local agents in the catalog, in order of registration. */
export const MAX_CATALOG_AGENTS = 1000;
/** Score of a complete match, from the specification. */
export const MAX_SCORE = 100;
