/**
 * The translator of a NAT64 for one machine (RFC 7915, only UDP and TCP): changes packets between IPv6 and IPv4 with a
 * TUN device. The NAT of the router follows. Reports when it works.
 */
import { read, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { openDevice } from '../tun.ts';
import { NAT64_DEVICE, NAT64_INNER } from './rules.ts';

const MAX_PACKET_BYTES = 65_535;
const IPV4_HEAD_BYTES = 20;
const IPV6_HEAD_BYTES = 40;
/** Bytes of an IPv4 address as an IPv6 address before the IPv4 address: 64:ff9b::/96. */
const NETWORK = Buffer.from('0064ff9b0000000000000000', 'hex');
/** Protocol numbers, and the place of their checksums after the IP header. */
const CHECKSUM_AT = new Map([
  [6, 16],
  [17, 6],
]);
/** `Don't fragment`. */
const WHOLE = 0x4000;

const inner = Buffer.from(NAT64_INNER.split('.').map(Number));
/** The IPv6 address of the machine, learned from its first packet. */
let machine: Buffer | null = null;

function sum(bytes: Buffer): number {
  let total = 0;
  for (let i = 0; i < bytes.length; i += 2) total += bytes.readUInt16BE(i);
  return total;
}

/** A sum of 16 bits with end-around carry. */
function folded(total: number): number {
  let value = total;
  while (value > 0xffff) value = (value & 0xffff) + Math.floor(value / 0x10000);
  return value;
}

/** Changes a checksum whose addresses are replaced: RFC 1624. */
function readdress(body: Buffer, protocol: number, before: Buffer, after: Buffer): boolean {
  const at = CHECKSUM_AT.get(protocol);
  if (at === undefined || body.length < at + 2) return false;
  const old = body.readUInt16BE(at);
  const removed = 0xffff - folded(sum(before));
  const changed = 0xffff - folded(0xffff - old + removed + sum(after));
  body.writeUInt16BE(changed === 0 && protocol === 17 ? 0xffff : changed, at);
  return true;
}

function toIpv4(packet: Buffer): Buffer | null {
  const [protocol = 0, hops = 0] = [packet[6], packet[7]];
  const [from, to] = [packet.subarray(8, 24), packet.subarray(24, 40)];
  if (!to.subarray(0, NETWORK.length).equals(NETWORK)) return null;
  machine = Buffer.from(from);
  const target = to.subarray(NETWORK.length);
  const body = packet.subarray(IPV6_HEAD_BYTES);
  if (!readdress(body, protocol, packet.subarray(8, 40), Buffer.concat([inner, target]))) return null;
  const head = Buffer.alloc(IPV4_HEAD_BYTES);
  head.writeUInt8(0x45, 0);
  head.writeUInt16BE(IPV4_HEAD_BYTES + body.length, 2);
  head.writeUInt16BE(WHOLE, 6);
  head.set([hops, protocol], 8);
  head.set(inner, 12);
  head.set(target, 16);
  head.writeUInt16BE(0xffff - folded(sum(head)), 10);
  return Buffer.concat([head, body]);
}

function toIpv6(packet: Buffer): Buffer | null {
  if (machine === null || packet[0] !== 0x45) return null;
  const [hops = 0, protocol = 0] = [packet[8], packet[9]];
  const from = Buffer.concat([NETWORK, packet.subarray(12, 16)]);
  const body = packet.subarray(IPV4_HEAD_BYTES, packet.readUInt16BE(2));
  if (!readdress(body, protocol, packet.subarray(12, 20), Buffer.concat([from, machine]))) return null;
  const head = Buffer.alloc(IPV6_HEAD_BYTES);
  head.writeUInt8(0x60, 0);
  head.writeUInt16BE(body.length, 4);
  head.set([protocol, hops], 6);
  head.set(from, 8);
  head.set(machine, 24);
  return Buffer.concat([head, body]);
}

const fd = openDevice('tun', NAT64_DEVICE, 'r+');
process.send?.({ ready: true });
process.once('disconnect', () => process.exit(0));
const receive = promisify(read);
const buffer = Buffer.alloc(MAX_PACKET_BYTES);
for (;;) {
  const { bytesRead } = await receive(fd, buffer, 0, buffer.length, null);
  const packet = buffer.subarray(0, bytesRead);
  const translated = (packet[0] ?? 0) >> 4 === 6 ? toIpv4(packet) : toIpv6(packet);
  if (translated !== null) writeSync(fd, translated);
}
