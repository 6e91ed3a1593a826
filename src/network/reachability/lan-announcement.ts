/** What a node says of itself on its LAN, as DNS-SD records (RFC 6763): `<node>._svcd._udp.local`. */
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { u16 } from '../links/wire.ts';
import { DNS_TYPE, encodeName, encodeQuery, encodeResponse, type MdnsPacket } from './mdns-messages.ts';

export const SERVICE = '_svcd._udp.local';
/** For how long others may remember an announcement, seconds. */
const TTL_S = 120;
const VERSION = '1';
/** Characters of the node key in its instance name. */
const NAME_LENGTH = 16;
/** Longest TXT entry that is looked at, bytes. */
const MAX_ENTRY_BYTES = 100;
/** Most TXT entries that are looked at. */
const MAX_TXT_ENTRIES = 32;
/** The first label of our service, as every packet about it contains it. */
const SERVICE_LABEL = Buffer.from('\u0005_svcd', 'latin1');

export interface Announcement {
  /** The tag of the network, as in its datagrams. */
  readonly network: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** Where the DHT listens. */
  readonly port: number;
}

/** The question for our service. */
export function encodeQuestion(): Uint8Array {
  return encodeQuery({ name: SERVICE, type: DNS_TYPE.ptr });
}

/** The response to it. It names no host: that is the address that it comes from. */
export function encodeAnnouncement({ network, nodeKey, port }: Announcement): Uint8Array {
  const node = toHex(nodeKey).slice(0, NAME_LENGTH);
  const name = `${node}.${SERVICE}`;
  const entries = [`v=${VERSION}`, `net=${toHex(network)}`, `key=${toHex(nodeKey)}`];
  const srv = Buffer.concat([u16(0), u16(0), u16(port), encodeName(`${node}.local`)]);
  const txt = Buffer.concat(entries.flatMap((entry) => [Uint8Array.of(entry.length), Buffer.from(entry, 'latin1')]));
  return encodeResponse(
    {
      answers: [{ name: SERVICE, type: DNS_TYPE.ptr, data: encodeName(name) }],
      additionals: [
        { name, type: DNS_TYPE.srv, data: srv },
        { name, type: DNS_TYPE.txt, data: txt },
      ],
    },
    TTL_S,
  );
}

/** True if a packet can be about our service: cheap enough to ask of everything that a LAN sends. */
export function mentionsService(packet: Buffer): boolean {
  return packet.includes(SERVICE_LABEL);
}

export function asksForService({ isResponse, questions }: MdnsPacket): boolean {
  const types: readonly number[] = [DNS_TYPE.ptr, DNS_TYPE.any];
  return !isResponse && questions.some(({ name, type }) => name === SERVICE && types.includes(type));
}

function readEntries(data: Uint8Array): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  let at = 0;
  for (let i = 0; i < MAX_TXT_ENTRIES && at < data.length; i++) {
    const length = data[at] ?? 0;
    const entry = Buffer.from(data.subarray(at + 1, at + 1 + length));
    at += length + 1;
    if (entry.length !== length || length > MAX_ENTRY_BYTES) continue;
    const [key = '', value = ''] = entry.toString('latin1').split('=', 2);
    entries.set(key, value);
  }
  return entries;
}

/** The announcement in a packet; null if there is none. */
export function decodeAnnouncement({ isResponse, records }: MdnsPacket): Announcement | null {
  const ours = records.filter(({ name }) => name.endsWith(`.${SERVICE}`));
  const srv = ours.find(({ type }) => type === DNS_TYPE.srv);
  const txt = ours.find(({ type, name }) => type === DNS_TYPE.txt && name === srv?.name);
  if (!isResponse || srv === undefined || txt === undefined) return null;
  // Priority and weight come first.
  const [, , , , high = 0, low = 0] = srv.data;
  const port = high * 0x100 + low;
  const entries = readEntries(txt.data);
  const network = fromHex(entries.get('net') ?? '');
  const nodeKey = fromHex(entries.get('key') ?? '');
  if (entries.get('v') !== VERSION || network === null || nodeKey?.length !== PUBLIC_KEY_BYTES) return null;
  return port > 0 ? { network, nodeKey, port } : null;
}
