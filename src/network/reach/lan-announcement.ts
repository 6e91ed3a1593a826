/** What a node says of itself on its LAN, as DNS-SD records (RFC 6763): `<node>._svcd._udp.local`. */
import type multicastDns from 'multicast-dns';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { isUint } from '../../foundation/cbor.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { memberOf } from '../../foundation/json.ts';

export const SERVICE = '_svcd._udp.local';
/** For how long others may remember an announcement, seconds. */
const TTL_S = 120;
const VERSION = '1';
/** Characters of the node key in its instance name. */
const NAME_LENGTH = 16;
/** Longest TXT entry that is looked at, bytes. */
const MAX_ENTRY_BYTES = 100;
/** Most records of one packet that are looked at. */
const MAX_RECORDS = 32;

export interface Announcement {
  /** The tag of the network, as in its datagrams. */
  readonly network: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** Where the DHT listens. */
  readonly port: number;
}

/** The answer to a question for our service. The host is whoever sends it, so it names none. */
export function encodeAnnouncement({ network, nodeKey, port }: Announcement): {
  readonly answers: multicastDns.Answer[];
  readonly additionals: multicastDns.Answer[];
} {
  const node = toHex(nodeKey).slice(0, NAME_LENGTH);
  const name = `${node}.${SERVICE}`;
  const data = [`v=${VERSION}`, `net=${toHex(network)}`, `key=${toHex(nodeKey)}`];
  return {
    answers: [{ name: SERVICE, type: 'PTR', ttl: TTL_S, data: name }],
    additionals: [
      { name, type: 'SRV', ttl: TTL_S, data: { port, target: `${node}.local` } },
      { name, type: 'TXT', ttl: TTL_S, data },
    ],
  };
}

function readEntries(data: unknown): ReadonlyMap<string, string> {
  const entries = new Map<string, string>();
  for (const entry of Array.isArray(data) ? data.slice(0, MAX_RECORDS) : []) {
    if (!(entry instanceof Uint8Array) || entry.length > MAX_ENTRY_BYTES) continue;
    const [key = '', value = ''] = Buffer.from(entry).toString('latin1').split('=', 2);
    entries.set(key, value);
  }
  return entries;
}

/** The announcement in a packet; null where there is none. */
export function decodeAnnouncement(packet: multicastDns.Packet): Announcement | null {
  const records = [...packet.answers, ...packet.additionals].slice(0, MAX_RECORDS);
  const ours = records.filter((record) => record.name.endsWith(`.${SERVICE}`));
  const srv = ours.find((record) => record.type === 'SRV');
  const txt = ours.find((record) => record.type === 'TXT' && record.name === srv?.name);
  if (srv === undefined || txt === undefined) return null;
  const port = memberOf(srv.data, 'port');
  const entries = readEntries(txt.data);
  const network = fromHex(entries.get('net') ?? '');
  const nodeKey = fromHex(entries.get('key') ?? '');
  if (entries.get('v') !== VERSION || network === null || nodeKey?.length !== PUBLIC_KEY_BYTES) return null;
  return isUint(port, 0xffff) && port > 0 ? { network, nodeKey, port } : null;
}
