/**
 * Nodes to come into the network by, as people write them: `host`, `host:port`, and before either of them
 * `<node aid>@` where the node has to prove that key.
 */
import { type Address, formatAddress, isHost, parseAddress } from './address.ts';
import { type Aid, nativeAid, nativePublicKey, parseAid } from './identity/aid.ts';
import { canonicalIp } from './ip.ts';

/** The UDP port of the record network where nobody names another. */
export const DEFAULT_DHT_PORT = 4121;

export interface NodeContact extends Address {
  /** The key that the node there has to prove; left out where any node will do. */
  readonly nodeKey?: Uint8Array;
}

function parsePlace(text: string): Address | null {
  const ip = canonicalIp(text);
  if (ip !== null) return { host: ip, port: DEFAULT_DHT_PORT };
  const address = isHost(text) ? { host: text, port: DEFAULT_DHT_PORT } : parseAddress(text);
  if (address !== null) return address.host === '' || address.port === 0 ? null : address;
  // [ipv6] alone.
  return text.endsWith(']') ? parseAddress(`${text}:${DEFAULT_DHT_PORT}`) : null;
}

/** The native AID's key; null for what is none. */
function keyOf(text: string): Uint8Array | null {
  try {
    const aid: Aid = parseAid(text);
    return nativePublicKey(aid);
  } catch {
    return null;
  }
}

/** Null where the text is no contact, or the AID before it is not that of a node. */
export function parseContact(text: string): NodeContact | null {
  const at = text.indexOf('@');
  const place = parsePlace(text.slice(at + 1));
  if (at < 0 || place === null) return place;
  const nodeKey = keyOf(text.slice(0, at));
  return nodeKey === null ? null : { ...place, nodeKey };
}

/** The text of a contact, the port always with it: equal for equal contacts. */
export function formatContact({ nodeKey, ...place }: NodeContact): string {
  return nodeKey === undefined ? formatAddress(place) : `${nativeAid(nodeKey)}@${formatAddress(place)}`;
}
