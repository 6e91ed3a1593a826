/**
 * Multicast DNS messages (RFC 1035, RFC 6762), as far as LAN discovery needs them. Any program on the LAN can send
 * them, so packets are limited before they are decoded.
 */
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { BinaryReader, u16, u32 } from '../peers/wire.ts';

/** Largest packet to decode, bytes: one Ethernet frame. */
const MAX_PACKET_BYTES = 1500;
/** Maximum number of questions and records in one packet. Larger packets are ignored. */
const MAX_RECORDS = 32;
/** Longest name, bytes (RFC 1035, section 3.1). */
const MAX_DNS_NAME_BYTES = 255;
/** Maximum number of compression pointers in one name. */
const MAX_POINTERS = 8;

export const DNS_TYPE = { ptr: 12, txt: 16, srv: 33, any: 255 } as const;
const CLASS_IN = 1;
/** Flags of a response: QR and AA. */
const RESPONSE_FLAGS = 0x8400;
const RESPONSE_BIT = 0x8000;
const POINTER_BITS = 0xc0;

export interface MdnsQuestion {
  readonly name: string;
  readonly type: number;
}

export interface MdnsRecord extends MdnsQuestion {
  /** The encoded data. */
  readonly data: Uint8Array;
}

export interface MdnsPacket {
  readonly isResponse: boolean;
  readonly questions: readonly MdnsQuestion[];
  /** Answers and additional records. */
  readonly records: readonly MdnsRecord[];
}

/** Reads a name at an offset; null if it is malformed or exceeds a limit. */
function readName(bytes: Uint8Array, start: number): { readonly name: string; readonly end: number } | null {
  const labels: string[] = [];
  let end: number | null = null;
  let pointers = 0;
  let size = 1;
  for (let at = start; ; ) {
    const length = bytes[at];
    if (length === undefined) return null;
    if (length === 0) return { name: labels.join('.'), end: end ?? at + 1 };
    if (length >= POINTER_BITS) {
      const target = (length - POINTER_BITS) * 0x100 + (bytes[at + 1] ?? Number.POSITIVE_INFINITY);
      end ??= at + 2;
      // Pointers must point backwards, so that there are no loops.
      if (target >= at || ++pointers > MAX_POINTERS) return null;
      at = target;
      continue;
    }
    size += length + 1;
    if (length >= 0x40 || size > MAX_DNS_NAME_BYTES || at + 1 + length > bytes.length) return null;
    labels.push(Buffer.from(bytes.subarray(at + 1, at + 1 + length)).toString('latin1'));
    at += length + 1;
  }
}

class PacketReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  question(): MdnsQuestion | null {
    const name = readName(this.#bytes, this.#at);
    if (name === null || name.end + 4 > this.#bytes.length) return null;
    this.#at = name.end + 4;
    return { name: name.name, type: this.#u16(name.end) };
  }

  record(): MdnsRecord | null {
    const head = this.question();
    // Skips the time to live; then follows the length of the data.
    if (head === null || this.#at + 6 > this.#bytes.length) return null;
    const start = this.#at + 6;
    const end = start + this.#u16(this.#at + 4);
    if (end > this.#bytes.length) return null;
    this.#at = end;
    return { ...head, data: this.#bytes.subarray(start, end) };
  }

  /** The next `count` items; null if one is malformed. */
  list<T>(count: number, next: () => T | null): readonly T[] | null {
    const items: T[] = [];
    for (let i = 0; i < count; i++) {
      const item = next();
      if (item === null) return null;
      items.push(item);
    }
    return items;
  }

  #u16(at: number): number {
    return (this.#bytes[at] ?? 0) * 0x100 + (this.#bytes[at + 1] ?? 0);
  }
}

/** Decodes a packet; null if it is malformed or exceeds a limit. */
export function decodePacket(bytes: Uint8Array): MdnsPacket | null {
  // protocol-dht.md, step 22
  if (bytes.length > MAX_PACKET_BYTES || bytes.length < 12) return null;
  const header = new BinaryReader(bytes);
  header.u16();
  const isResponse = (header.u16() & RESPONSE_BIT) !== 0;
  const counts = [header.u16(), header.u16(), header.u16(), header.u16()] as const;
  const [questionCount, answerCount, authorityCount, additionalCount] = counts;
  if (questionCount + answerCount + authorityCount + additionalCount > MAX_RECORDS) return null;
  const reader = new PacketReader(bytes, 12);
  const record = (): MdnsRecord | null => reader.record();
  const questions = reader.list(questionCount, () => reader.question());
  const answers = questions && reader.list(answerCount, record);
  const additionals = answers && reader.list(authorityCount, record) && reader.list(additionalCount, record);
  if (questions === null || answers === null || additionals === null) return null;
  return { isResponse, questions, records: [...answers, ...additionals] };
}

/** Encodes a name without compression. Labels must not exceed 63 characters. */
export function encodeName(name: string): Uint8Array {
  const labels = name.split('.').map((label) => Buffer.from(label, 'latin1'));
  return Buffer.concat([...labels.flatMap((label) => [Uint8Array.of(label.length), label]), Uint8Array.of(0)]);
}

function header(flags: number, questions: number, answers: number, additionals: number): Uint8Array {
  return Buffer.concat([0, flags, questions, answers, 0, additionals].map(u16));
}

export function encodeQuery({ name, type }: MdnsQuestion): Uint8Array {
  return Buffer.concat([header(0, 1, 0, 0), encodeName(name), u16(type), u16(CLASS_IN)]);
}

/** Encodes a response. @param ttlS time to live of its records, seconds */
export function encodeResponse(
  { answers, additionals }: { readonly answers: readonly MdnsRecord[]; readonly additionals: readonly MdnsRecord[] },
  ttlS: number,
): Uint8Array {
  const records = [...answers, ...additionals].flatMap(({ name, type, data }) => [
    encodeName(name),
    ...[u16(type), u16(CLASS_IN), u32(ttlS), u16(data.length)],
    data,
  ]);
  return Buffer.concat([header(RESPONSE_FLAGS, 0, answers.length, additionals.length), ...records]);
}

/* The announcement of a node on its LAN, as DNS-SD records (RFC 6763): `<node>._svcd._udp.local`. */

export const SERVICE = '_svcd._udp.local';
/** Time to live of an announcement, seconds. */
const TTL_S = 120;
const VERSION = '1';
/** Number of characters of the node key in the instance name. */
const NAME_LENGTH = 16;
/** Longest TXT entry to read, bytes. */
const MAX_ENTRY_BYTES = 100;
/** Maximum number of TXT entries to read. */
const MAX_TXT_ENTRIES = 32;
/** The first label of the service name, which every packet about svcd contains. */
const SERVICE_LABEL = Buffer.from('\u0005_svcd', 'latin1');

export interface Announcement {
  /** The tag of the network, as in its datagrams. */
  readonly network: Uint8Array;
  readonly nodeKey: Uint8Array;
  /** The port of the DHT. */
  readonly port: number;
}

/** The question for svcd nodes. */
export function encodeQuestion(): Uint8Array {
  return encodeQuery({ name: SERVICE, type: DNS_TYPE.ptr });
}

/** The announcement. It contains no host, because the source address of the packet is the host. */
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

/**
 * True if a packet may be about svcd. This check is cheap, because it runs for every multicast DNS packet on the LAN.
 */
export function mentionsService(packet: Buffer): boolean {
  return packet.includes(SERVICE_LABEL);
}

export function isServiceQuery({ isResponse, questions }: MdnsPacket): boolean {
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
  // After priority and weight.
  const [, , , , high = 0, low = 0] = srv.data;
  const port = high * 0x100 + low;
  const entries = readEntries(txt.data);
  const network = fromHex(entries.get('net') ?? '');
  const nodeKey = fromHex(entries.get('key') ?? '');
  if (entries.get('v') !== VERSION || network === null || nodeKey?.length !== PUBLIC_KEY_BYTES) return null;
  return port > 0 ? { network, nodeKey, port } : null;
}
