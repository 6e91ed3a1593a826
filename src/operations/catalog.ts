/** Operations for programs that find agents through web standards: AI Catalog 1.0, Agentic Resource Discovery 0.9. */
import { Type } from 'typebox';
import {
  MAX_FILTER_FIELDS,
  MAX_FILTER_VALUES,
  MAX_SCORE,
  MAX_SEARCH_PAGE,
  MAX_SEARCH_TEXT_CHARS,
  SEARCH_PAGE_DEFAULT,
} from '../foundation/domain/directory.ts';
import { declare } from './declare.ts';
import { AnyObject, closed, oneOf } from './schemas.ts';

/** Federation modes of a search. Here the whole record network is one registry. */
const FEDERATIONS = ['auto', 'referrals', 'none'] as const;
/** Longest value of a filter, characters. */
const MAX_FILTER_CHARS = 200;
/** A page token is the number of its first entry. */
const PAGE_TOKEN = '^[1-9]\\d{0,5}$';

const TrustManifest = Type.Object({
  identity: Type.String({ description: 'The DID of the agent, or `svc://` and the AID of a wallet.' }),
  identityType: oneOf(['did', 'other']),
});

const Entry = Type.Object({
  identifier: Type.String({ description: '`urn:air:`, the DID or AID, and the kind of card.' }),
  displayName: Type.String(),
  type: Type.String({ description: 'Media type of the card.' }),
  url: Type.Optional(Type.String({ description: 'Address of the card on this node.' })),
  data: Type.Optional(AnyObject),
  description: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Array(Type.String())),
  capabilities: Type.Optional(Type.Array(Type.String(), { description: 'Service names.' })),
  metadata: Type.Record(Type.String(), Type.String()),
  trustManifest: TrustManifest,
});

const FilterText = Type.String({ maxLength: MAX_FILTER_CHARS });

const SearchQuery = closed({
  query: closed({
    text: Type.String({ minLength: 1, maxLength: MAX_SEARCH_TEXT_CHARS }),
    filter: Type.Optional(
      Type.Record(Type.String(), Type.Union([FilterText, Type.Array(FilterText, { maxItems: MAX_FILTER_VALUES })]), {
        maxProperties: MAX_FILTER_FIELDS,
        description: 'Field path of an entry to accepted values. `publisher` is the DID or AID.',
      }),
    ),
  }),
  federation: Type.Optional(oneOf(FEDERATIONS, { description: 'The record network is always searched.' })),
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_SEARCH_PAGE, default: SEARCH_PAGE_DEFAULT })),
  pageToken: Type.Optional(Type.String({ pattern: PAGE_TOKEN, description: '`pageToken` of the previous page.' })),
});

const SearchResults = Type.Object({
  results: Type.Array(
    Type.Object({
      ...Entry.properties,
      score: Type.Integer({
        minimum: 0,
        maximum: MAX_SCORE,
        description: 'Match quality, not trust.',
      }),
      source: Type.String(),
    }),
  ),
  referrals: Type.Optional(Type.Array(AnyObject, { description: 'Always empty: there are no other registries.' })),
  pageToken: Type.Optional(Type.String()),
});

export const catalogOperations = declare(
  { tag: 'Directory', permission: 'read' },
  {
    catalogGet: {
      summary: 'Returns the AI Catalog of this node: its published agents and its search address.',
      route: 'GET /.well-known/ai-catalog.json',
      output: Type.Object({
        specVersion: Type.Literal('1.0'),
        host: Type.Object({
          displayName: Type.String(),
          identifier: Type.String(),
          trustManifest: TrustManifest,
        }),
        entries: Type.Array(Entry),
      }),
      produces: 'application/ai-catalog+json',
    },

    catalogSearch: {
      summary:
        'Finds agents by text (Agentic Resource Discovery 0.9). Service names in the text, its words and pairs of words are searched.',
      route: 'POST /search',
      body: SearchQuery,
      output: SearchResults,
    },

    catalogSearchBelow: {
      summary: 'The same search at the address that the catalog names.',
      route: 'POST /ard/search',
      body: SearchQuery,
      output: SearchResults,
    },
  },
);
