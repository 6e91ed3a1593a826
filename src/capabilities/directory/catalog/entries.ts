/**
 * What agents offer, as entries of an AI Catalog (Agentic Resource Discovery 0.9, section 4): addresses in them are
 * those of this node's gateway, and what vouches for an entry is the agent's own key.
 */
import { type Aid, didOf } from '../../../foundation/identity/aid.ts';

/** A service that an agent offers, from its own records or those of the network. */
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
  /** Media type of what `url` leads to, or `data` is: one of the two is there. */
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
/** What svcd itself knows of a service whose protocol has no card. */
const SERVICE = 'application/vnd.svcd.service+json';
const REGISTRY = 'application/ai-registry+json';
/** Where an A2A server shows its card. */
const A2A_CARD_PATH = '/.well-known/agent-card.json';
/** Where an MCP server usually is, where its record says no other path. */
const MCP_PATH = '/mcp';

/** Who vouches for an entry: the DID of a native agent, or the AID of a wallet as an address. */
function trustOf(aid: Aid): CatalogEntry['trustManifest'] {
  const did = didOf(aid);
  return did === null ? { identity: `svc://${aid}`, identityType: 'other' } : { identity: did, identityType: 'did' };
}

/** `urn:air:` and the DID, or the AID, in the publisher's place: nobody's word is needed for it. */
function urn(aid: Aid, kind: string, name: string): string {
  return `urn:air:${didOf(aid) ?? aid}:${kind}:${name}`;
}

/** Path of the address that a record tells; null where it tells none. */
function pathOf({ meta }: CatalogOffer): string | null {
  const url = typeof meta['url'] === 'string' ? URL.parse(meta['url']) : null;
  return url === null || url.pathname === '/' ? null : url.pathname;
}

/** What an offer is under each protocol that has a card, or else under none. */
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

/** The entry that says where this node answers searches. */
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

/** Where the search stands: its base address. */
export function registryUrl(api: string): string {
  return `${api}/ard/`;
}

/** Who serves the catalog. */
export function catalogHost(node: Aid) {
  const trustManifest = trustOf(node);
  return { displayName: 'svcd', identifier: trustManifest.identity, trustManifest };
}
