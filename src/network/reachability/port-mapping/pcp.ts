/** Requests port mappings by PCP (RFC 6887). */
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { canonicalIp, ipv4Text } from '../../../foundation/ip.ts';
import { type GrantedPort, type PortGrantor, requestGateway } from './gateway.ts';

/* Messages of the Port Control Protocol (RFC 6887): MAP of a UDP port. Pure. */

const VERSION = 2;
const OPCODE_MAP = 1;
const REPLY_BIT = 0x80;
const PROTOCOL_UDP = 17;
/** Sizes of the common header and of the MAP part, bytes (RFC 6887, 7.1 and 11.1). */
const HEADER_BYTES = 24;
const MAP_BYTES = 36;
/** Largest message, bytes (RFC 6887, 7). */
const MAX_PCP_BYTES = 1100;
/** Size of the nonce that identifies the owner of a mapping, bytes. */
export const PCP_NONCE_BYTES = 12;

export interface PcpMapRequest {
  readonly nonce: Uint8Array;
  /** IPv4 address of this machine. The router compares it with the source of the request. */
  readonly ownHost: string;
  readonly internalPort: number;
  readonly suggestedPort: number;
  /** Seconds; 0 deletes the mapping. */
  readonly lifetimeS: number;
}

export interface PcpMapReply {
  /** 0 for success (RFC 6887, 7.4). */
  readonly result: number;
  readonly lifetimeS: number;
  readonly nonce: Uint8Array;
  readonly internalPort: number;
  readonly externalPort: number;
  readonly externalHost: string;
}

/** The four bytes of an IPv4 address in canonical form. */
function ipv4Bytes(host: string): number[] {
  return host.split('.').map(Number);
}

/** Writes an IPv4 address as an IPv4-mapped IPv6 address, the form of all addresses in PCP. */
function putHost(bytes: Uint8Array, at: number, host: string): void {
  bytes.set([0xff, 0xff, ...ipv4Bytes(host)], at + 10);
}

/** Reads an IPv4 or IPv6 address from 16 bytes; null if it is invalid or not routable. */
function hostAt(view: DataView, at: number): string | null {
  const groups = Array.from({ length: 8 }, (_, i) => view.getUint16(at + 2 * i));
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff)
    return ipv4Text(view.getUint32(at + 12));
  return canonicalIp(groups.map((group) => group.toString(16)).join(':'));
}

export function encodePcpMap({ nonce, ownHost, internalPort, suggestedPort, lifetimeS }: PcpMapRequest): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + MAP_BYTES);
  const view = new DataView(bytes.buffer);
  bytes[0] = VERSION;
  bytes[1] = OPCODE_MAP;
  view.setUint32(4, lifetimeS);
  putHost(bytes, 8, ownHost);
  bytes.set(nonce, HEADER_BYTES);
  bytes[HEADER_BYTES + 12] = PROTOCOL_UDP;
  view.setUint16(HEADER_BYTES + 16, internalPort);
  view.setUint16(HEADER_BYTES + 18, suggestedPort);
  putHost(bytes, HEADER_BYTES + 20, '0.0.0.0');
  return bytes;
}

/**
 * True if the router does not support this version of PCP and answers with another one, for example NAT-PMP (RFC 6887,
 * 9).
 */
export function isOtherVersion(bytes: Uint8Array): boolean {
  return bytes.length >= 4 && bytes[0] !== VERSION && ((bytes[1] ?? 0) & REPLY_BIT) !== 0;
}

/** Decodes the response to a MAP request; null for anything else. Options are ignored. */
export function decodePcpMapReply(bytes: Uint8Array): PcpMapReply | null {
  if (bytes.length < HEADER_BYTES + MAP_BYTES || bytes.length > MAX_PCP_BYTES || bytes.length % 4 !== 0) return null;
  if (bytes[0] !== VERSION || bytes[1] !== (REPLY_BIT | OPCODE_MAP) || bytes[HEADER_BYTES + 12] !== PROTOCOL_UDP)
    return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const externalHost = hostAt(view, HEADER_BYTES + 20);
  if (externalHost === null) return null;
  return {
    result: view.getUint8(3),
    lifetimeS: view.getUint32(4),
    nonce: bytes.slice(HEADER_BYTES, HEADER_BYTES + PCP_NONCE_BYTES),
    internalPort: view.getUint16(HEADER_BYTES + 16),
    externalPort: view.getUint16(HEADER_BYTES + 18),
    externalHost,
  };
}

/** How long to wait for an answer, milliseconds: the start of the schedule of RFC 6887, 8.1.1, which has no end. */
const PCP_WAITS_MS = [3000, 6000];

export class PcpGrantor implements PortGrantor {
  readonly protocol = 'pcp';
  readonly #router: Address;
  readonly #ownHost: string;
  readonly #clock: Clock;
  readonly #randomBytes: (length: number) => Uint8Array;
  /** By internal port. Only a client with the nonce can renew or delete a mapping. */
  readonly #nonces = new Map<number, Uint8Array>();

  constructor(router: Address, ownHost: string, clock: Clock, randomBytes: (length: number) => Uint8Array) {
    this.#router = router;
    this.#ownHost = ownHost;
    this.#clock = clock;
    this.#randomBytes = randomBytes;
  }

  async grant(
    internalPort: number,
    suggestedPort: number,
    lifetimeS: number,
    signal: AbortSignal,
  ): Promise<GrantedPort> {
    const nonce = this.#nonces.get(internalPort) ?? this.#randomBytes(PCP_NONCE_BYTES);
    this.#nonces.set(internalPort, nonce);
    const datagram = encodePcpMap({ nonce, ownHost: this.#ownHost, internalPort, suggestedPort, lifetimeS });
    const read = (bytes: Uint8Array): GrantedPort | undefined => {
      if (isOtherVersion(bytes)) throw refused('it supports only another version');
      const reply = decodePcpMapReply(bytes);
      if (reply === null || reply.internalPort !== internalPort || !equalBytes(reply.nonce, nonce)) return undefined;
      if (reply.result !== 0) throw refused(`code ${reply.result}`);
      if (lifetimeS > 0 && (reply.lifetimeS === 0 || reply.externalPort === 0)) throw refused('it granted no port');
      return { external: { host: reply.externalHost, port: reply.externalPort }, lifetimeS: reply.lifetimeS };
    };
    return await requestGateway(this.#clock, this.#router, { datagram, waitsMs: PCP_WAITS_MS, read }, signal);
  }

  async release(internalPort: number, externalPort: number, signal: AbortSignal): Promise<void> {
    await this.grant(internalPort, externalPort, 0, signal);
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router rejected the PCP request: ${reason}.` });
}
