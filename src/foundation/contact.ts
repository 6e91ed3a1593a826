/**
 * Contacts: nodes through which this node joins the network, as users write them. `host` or `host:port`, with `<node
 * aid>@` in front if the node must prove that key.
 */
import { type Address, formatAddress, isHost, parseAddress } from './address.ts';
import { type Aid, nativeAid, nativePublicKey, parseAid } from './identity/aid.ts';
import { canonicalIp } from './ip.ts';

/** Default UDP port of the record network. */
export const DEFAULT_DHT_PORT = 4121;

export interface NodeContact extends Address {
  /** The key that the node must prove; omitted to accept any node. */
  readonly nodeKey?: Uint8Array;
}

function parsePlace(text: string): Address | null {
  const ip = canonicalIp(text);
  if (ip !== null) return { host: ip, port: DEFAULT_DHT_PORT };
  const address = isHost(text) ? { host: text, port: DEFAULT_DHT_PORT } : parseAddress(text);
  if (address !== null) return address.host === '' || address.port === 0 ? null : address;
  // An IPv6 address in brackets without a port.
  return text.endsWith(']') ? parseAddress(`${text}:${DEFAULT_DHT_PORT}`) : null;
}

/** The public key of a native AID; null if it is none. */
function keyOf(text: string): Uint8Array | null {
  try {
    const aid: Aid = parseAid(text);
    return nativePublicKey(aid);
  } catch {
    return null;
  }
}

/** Parses a contact; null if it is invalid or its AID is not the AID of a node. */
export function parseContact(text: string): NodeContact | null {
  const at = text.indexOf('@');
  const place = parsePlace(text.slice(at + 1));
  if (at < 0 || place === null) return place;
  const nodeKey = keyOf(text.slice(0, at));
  return nodeKey === null ? null : { ...place, nodeKey };
}

/** Formats a contact, always with the port. Equal contacts have equal texts. */
export function formatContact({ nodeKey, ...place }: NodeContact): string {
  return nodeKey === undefined ? formatAddress(place) : `${nativeAid(nodeKey)}@${formatAddress(place)}`;
}
