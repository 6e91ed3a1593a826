/**
 * The catalog: the agents of this node and of the network as entries of an AI Catalog (Agentic Resource Discovery 0.9,
 * section 4), and searches in plain language. Entries contain addresses of this node's gateway. The key of the agent
 * vouches for an entry.
 */

import type { Clock } from '../../foundation/clock.ts';
import { deadline } from '../../foundation/deadline.ts';
import { MAX_CATALOG_AGENTS, MAX_NAMES_PER_CALL, MAX_PROVIDERS, MAX_SCORE } from '../../foundation/domain/directory.ts';
import { isServiceName, MCP_PATH } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, didOf } from '../../foundation/identity/aid.ts';
import type { Directory } from './directory.ts';
import type { DiscoveryEntry, Search } from './discovery.ts';

/** A service that an agent offers, from its own records or from records of the network. */
export interface CatalogOffer {
  readonly aid: Aid;
  /** Its service name; null for an agent that offers none by name. */
  readonly service: string | null;
  readonly name: string;
  readonly brief: string;
  readonly protocols: readonly string[];
  readonly tags: readonly string[];
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface CatalogEntry {
  readonly identifier: string;
  readonly displayName: string;
  /** Media type of the resource at `url`, or of `data`. An entry has one of the two. */
  readonly type: string;
  readonly url?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly description?: string;
  readonly tags?: readonly string[];
  /** The service names. */
  readonly capabilities?: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly trustManifest: { readonly identity: string; readonly identityType: 'did' | 'other' };
}

const A2A_CARD = 'application/a2a-agent-card+json';
const MCP_CARD = 'application/mcp-server-card+json';
/** The description by svcd of a service whose protocol has no card. */
const SERVICE = 'application/vnd.svcd.service+json';
const REGISTRY = 'application/ai-registry+json';
/** Path of the card of an A2A server. */
const A2A_CARD_PATH = '/.well-known/agent-card.json';

/** The identity that vouches for an entry: the DID of a native agent, or the AID of a wallet as an address. */
function trustOf(aid: Aid): CatalogEntry['trustManifest'] {
  const did = didOf(aid);
  return did === null ? { identity: `svc://${aid}`, identityType: 'other' } : { identity: did, identityType: 'did' };
}

/** `urn:air:` and the DID, or the AID, in the publisher's place: no authority is needed for it. */
function urn(aid: Aid, kind: string, name: string): string {
  return `urn:air:${didOf(aid) ?? aid}:${kind}:${name}`;
}

/** Path of the address in a record; null if there is none. */
function pathOf({ meta }: CatalogOffer): string | null {
  const url = typeof meta['url'] === 'string' ? URL.parse(meta['url']) : null;
  return url === null || url.pathname === '/' ? null : url.pathname;
}

/** The cards of an offer, one for each protocol that has a card, or a service entry. */
function artifacts(offer: CatalogOffer, gateway: string) {
  const protocols = new Set(offer.protocols.map((protocol) => protocol.trim().toLowerCase()));
  const { aid, service, name, brief } = offer;
  const found = [];
  if (protocols.has('a2a')) found.push({ kind: 'a2a', type: A2A_CARD, url: `${gateway}${A2A_CARD_PATH}` });
  if (protocols.has('mcp')) {
    const remotes = [{ type: 'streamable-http', url: `${gateway}${pathOf(offer) ?? MCP_PATH}` }];
    found.push({ kind: 'mcp', type: MCP_CARD, data: { name: name || aid, description: brief, remotes } });
  }
  if (found.length > 0) return found;
  const data = { aid, service, protocols: offer.protocols, meta: offer.meta, gateway: `${gateway}/` };
  return [{ kind: 'service', type: SERVICE, data }];
}

/**
 * The entries of an offer, one for each kind of card.
 * @param api address of this node's API, without a slash at its end
 */
export function entriesOf(offer: CatalogOffer, api: string): CatalogEntry[] {
  const { aid, service, name, brief, tags } = offer;
  const about = `${api}/resolve/${aid}`;
  return artifacts(offer, `${api}/aid/${aid}`).map(({ kind, ...artifact }) => ({
    identifier: urn(aid, kind, service ?? 'agent'),
    displayName: name || (service ?? aid),
    ...artifact,
    ...(brief === '' ? {} : { description: brief }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(service === null ? {} : { capabilities: [service] }),
    metadata: {
      aid,
      ...(service === null ? {} : { service }),
      record: `${about}/records`,
      // Signed by the agent, and verified by this node.
      ...(kind === 'service' ? {} : { card: `${about}/card` }),
    },
    trustManifest: trustOf(aid),
  }));
}

/** The entry with the address for searches on this node. */
export function registryEntry(node: Aid, api: string): CatalogEntry {
  return {
    identifier: urn(node, 'registry', 'svcd'),
    displayName: 'Search of the record network',
    type: REGISTRY,
    url: registryUrl(api),
    description: 'Finds agents by the names of their services, in the record network that this node is part of.',
    metadata: { aid: node },
    trustManifest: trustOf(node),
  };
}

/** The base address of the search. */
export function registryUrl(api: string): string {
  return `${api}/ard/`;
}

/** The node that serves the catalog. */
export function catalogHost(node: Aid) {
  const trustManifest = trustOf(node);
  return { displayName: 'svcd', identifier: trustManifest.identity, trustManifest };
}

/** Words without meaning for a search. */
const FILLERS: ReadonlySet<string> = new Set(
  (
    'a an the this that any some all me my we i you it is are be do does can could would please find search get give show ' +
    'need want look looking for to of in on at by with from and or how help use using ' +
    'what where which who agent agents tool tools service services server servers api apis'
  ).split(' '),
);

/** Accepted values by field path. One of them must match. */
export type Filter = Readonly<Record<string, string | readonly string[]>>;

/** The words of a text that say something, in lower case and in their order. */
export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}._-]*/gu) ?? [];
  return [...new Set(words.map((word) => word.replace(/[._-]+$/, '')))].filter((word) => !FILLERS.has(word));
}

/**
 * Service names that a text may mean, the likeliest first: names in the text, its words, and pairs of them as
 * `category.name`.
 */
export function namesIn(text: string): string[] {
  const words = wordsOf(text);
  const [written, plain] = [words.filter((word) => word.includes('.')), words.filter((word) => !word.includes('.'))];
  const neighbours = plain.slice(1).flatMap((word, i) => [`${plain[i]}.${word}`, `${word}.${plain[i]}`]);
  const pairs = plain.flatMap((a) => plain.filter((b) => b !== a).map((b) => `${a}.${b}`));
  const names = new Set([...written, ...neighbours, ...plain, ...pairs]);
  return [...names].filter(isServiceName).slice(0, MAX_NAMES_PER_CALL);
}

/** How much of a text an offer answers: 0 to `MAX_SCORE`. An offer under a name in the text matches completely. */
export function scoreOf(offer: CatalogOffer, text: string): number {
  const words = wordsOf(text);
  if (words.length === 0) return 0;
  if (offer.service !== null && words.includes(offer.service)) return MAX_SCORE;
  const offered = [offer.service ?? '', offer.name, offer.brief, ...offer.tags, ...offer.protocols].join(' ');
  const known = new Set(wordsOf(offered.replaceAll('.', ' ')));
  return Math.round((MAX_SCORE * words.filter((word) => known.has(word)).length) / words.length);
}

/** The texts at a path of an entry; of lists, the texts of each element. */
function textsAt(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((element) => textsAt(element, path));
  const [first, ...rest] = path;
  if (first === undefined) return typeof value === 'string' ? [value] : [];
  return typeof value === 'object' && value !== null && Object.hasOwn(value, first)
    ? textsAt(Reflect.get(value, first), rest)
    : [];
}

/** The publisher that an identifier names: a DID, or the segment behind `urn:air:`. */
function publisherOf({ identifier, trustManifest }: CatalogEntry): string {
  return trustManifest.identityType === 'did' ? trustManifest.identity : (identifier.split(':')[2] ?? '');
}

/** True where an entry has one of the values at each path. */
export function fits(entry: CatalogEntry, filter: Filter): boolean {
  return Object.entries(filter).every(([path, wanted]) => {
    const texts = path === 'publisher' ? [publisherOf(entry)] : textsAt(entry, path.split('.'));
    const values = (typeof wanted === 'string' ? [wanted] : wanted).map((text) => text.toLowerCase());
    return texts.some((text) => values.includes(text.toLowerCase()));
  });
}

/** Milliseconds after which a search answers with the results so far: its clients wait five seconds. */
const CATALOG_SEARCH_MS = 3000;

export interface CatalogDependencies {
  readonly nodeAid: Aid;
  readonly clock: Clock;
  readonly directory: Pick<Directory, 'summary' | 'services'>;
  /** The first agents here, in the order of their registration. */
  agents(limit: number): readonly Aid[];
  discover(search: Search): Promise<readonly DiscoveryEntry[]>;
  /** Address of this node's API, without a slash at its end. */
  api(): string;
}

export interface CatalogSearch {
  readonly text: string;
  readonly filter: Filter;
  readonly pageSize: number;
  /** The index of the first result. */
  readonly offset: number;
  readonly signal?: AbortSignal;
}

export interface FoundEntry extends CatalogEntry {
  /** How much of the text it answers, 0 to `MAX_SCORE`. */
  readonly score: number;
  /** The search that found it. */
  readonly source: string;
}

export class Catalog {
  readonly #deps: CatalogDependencies;

  constructor(dependencies: CatalogDependencies) {
    this.#deps = dependencies;
  }

  /** The published agents of this node, and the address for searches. */
  manifest() {
    const { nodeAid } = this.#deps;
    const api = this.#deps.api();
    const entries = this.#ownOffers().flatMap((offer) => entriesOf(offer, api));
    return {
      specVersion: '1.0' as const,
      host: catalogHost(nodeAid),
      entries: [...entries, registryEntry(nodeAid, api)],
    };
  }

  /**
   * The offers here and on the network that match a text, the best first.
   * @returns a page, and the offset of the next page; null on the last page
   * @throws SvcError `cancelled`
   */
  async search({ text, filter, pageSize, offset, signal }: CatalogSearch) {
    const api = this.#deps.api();
    const found = [...this.#ownOffers(), ...(await this.#discover(text, signal))];
    const byIdentifier = new Map<string, FoundEntry>();
    for (const offer of found) {
      const score = scoreOf(offer, text);
      if (score === 0) continue;
      for (const entry of entriesOf(offer, api)) {
        if (byIdentifier.has(entry.identifier) || !fits(entry, filter)) continue;
        byIdentifier.set(entry.identifier, { ...entry, score, source: registryUrl(api) });
      }
    }
    const all = [...byIdentifier.values()].sort((a, b) => b.score - a.score || (a.identifier < b.identifier ? -1 : 1));
    const end = offset + pageSize;
    return { results: all.slice(offset, end), next: end < all.length ? end : null };
  }

  /**
   * The agents on the network that match a text, the best first.
   * @throws SvcError `cancelled`
   */
  async findAgents(text: string, limit: number, signal: AbortSignal): Promise<Aid[]> {
    const scored = (await this.#discover(text, signal))
      .map((offer) => ({ aid: offer.aid, score: scoreOf(offer, text) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score);
    return [...new Set(scored.map(({ aid }) => aid))].slice(0, limit);
  }

  #ownOffers(): CatalogOffer[] {
    const { directory } = this.#deps;
    return this.#deps.agents(MAX_CATALOG_AGENTS).flatMap((aid): CatalogOffer[] => {
      const { published, name, profile } = directory.summary(aid);
      // An agent that is not published on the network is not listed here.
      if (!published) return [];
      const offers = directory.services(aid).map((offer) => ({ ...offer, aid, meta: offer.meta ?? {} }));
      if (offers.length > 0) return offers;
      const { brief = '', protocols = [], skills = [], meta = {} } = profile ?? {};
      return [{ aid, service: null, name, brief, protocols, tags: skills, meta }];
    });
  }

  /** The records of the network under the names that a text may mean, as far as they arrive in time. */
  async #discover(text: string, signal: AbortSignal | undefined): Promise<DiscoveryEntry[]> {
    using limit = deadline(this.#deps.clock, CATALOG_SEARCH_MS, signal);
    const looks = namesIn(text).map(async (name) => {
      try {
        const any = { protocols: [], tags: [], limit: MAX_PROVIDERS, signal: limit.signal };
        return await this.#deps.discover({ services: [name], ...any });
      } catch (error) {
        // A failed name does not affect other names.
        if (signal?.aborted === true || !(error instanceof SvcError)) throw error;
        return [];
      }
    });
    return (await Promise.all(looks)).flat();
  }
}
