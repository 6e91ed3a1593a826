/**
 * Reads a PROXY header, version 1 or 2, with which a web server names its client
 * (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). Strangers can send it too, so it is only read from listed
 * addresses.
 */
import { canonicalIp, IPV4_BYTES, IPV6_BYTES, ipv4Text } from '../../foundation/ip.ts';

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const V1_PREFIX = Buffer.from('PROXY ', 'latin1');
const V2_HEADER_BYTES = 16;
/** Longest header of version 1, bytes. */
const MAX_V1_BYTES = 107;
/** Longest header of version 2 that is accepted, bytes: two addresses and the usual additions. */
const MAX_V2_BYTES = 1024;
const V2_LOCAL = 0x20;
const V2_PROXY = 0x21;
const TCP_OVER_IPV4 = 0x11;
const TCP_OVER_IPV6 = 0x21;
const V1_LINE = /^PROXY (?:UNKNOWN(?: .*)?|TCP[46] (\S+) \S+ (\d{1,5}) \d{1,5})$/;

/** The end of the header, and the client: null if the web server connects for itself. */
export interface ProxyHeader {
  readonly length: number;
  readonly client: { readonly address: string; readonly port: number } | null;
}

/** `more` if the header is incomplete, `invalid` if these bytes are none. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  if (startsLike(bytes, SIGNATURE)) return readV2(bytes);
  return startsLike(bytes, V1_PREFIX) ? readV1(bytes) : 'invalid';
}

/** True if one of both is the start of the other. */
function startsLike(bytes: Buffer, prefix: Buffer): boolean {
  const length = Math.min(bytes.length, prefix.length);
  return bytes.subarray(0, length).equals(prefix.subarray(0, length));
}

function readV1(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  const end = bytes.subarray(0, MAX_V1_BYTES).indexOf('\r\n');
  if (end < 0) return bytes.length < MAX_V1_BYTES ? 'more' : 'invalid';
  const match = V1_LINE.exec(bytes.toString('latin1', 0, end));
  if (match === null) return 'invalid';
  const [, address, port] = match;
  return address === undefined ? { length: end + 2, client: null } : clientOf(end + 2, address, Number(port));
}

function readV2(bytes: Buffer): ProxyHeader | 'more' | 'invalid' {
  if (bytes.length < V2_HEADER_BYTES) return 'more';
  const [command, family] = [bytes.readUInt8(12), bytes.readUInt8(13)];
  const length = V2_HEADER_BYTES + bytes.readUInt16BE(14);
  if (length > MAX_V2_BYTES || (command !== V2_LOCAL && command !== V2_PROXY)) return 'invalid';
  if (bytes.length < length) return 'more';
  if (command === V2_LOCAL) return { length, client: null };
  const size = family === TCP_OVER_IPV4 ? IPV4_BYTES : family === TCP_OVER_IPV6 ? IPV6_BYTES : 0;
  if (size === 0 || length < V2_HEADER_BYTES + 2 * size + 4) return 'invalid';
  const port = bytes.readUInt16BE(V2_HEADER_BYTES + 2 * size);
  if (size === IPV4_BYTES) return clientOf(length, ipv4Text(bytes.readUInt32BE(V2_HEADER_BYTES)), port);
  const groups = Array.from({ length: IPV6_BYTES / 2 }, (_, i) => bytes.readUInt16BE(V2_HEADER_BYTES + 2 * i));
  return clientOf(length, groups.map((group) => group.toString(16)).join(':'), port);
}

function clientOf(length: number, text: string, port: number): ProxyHeader | 'invalid' {
  const address = canonicalIp(text);
  return address === null || port > 0xff_ff ? 'invalid' : { length, client: { address, port } };
}
