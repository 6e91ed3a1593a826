/** Requests port mappings by NAT-PMP (RFC 6886). */
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { ipv4Text } from '../../../foundation/ip.ts';
import { type GrantedPort, type PortGrantor, requestGateway } from './gateway.ts';

/* Messages of the NAT Port Mapping Protocol (RFC 6886). Pure. */

const VERSION = 0;
const OPCODE_ADDRESS = 0;
const OPCODE_MAP_UDP = 1;
const REPLY_OPCODES = 128;
const ADDRESS_REPLY_BYTES = 12;
const MAP_REPLY_BYTES = 16;

export interface NatPmpAddressReply {
  /** 0 for success (RFC 6886, 3.5). */
  readonly result: number;
  readonly externalHost: string;
}

export interface NatPmpMapReply {
  readonly result: number;
  readonly internalPort: number;
  readonly externalPort: number;
  readonly lifetimeS: number;
}

/** Requests the external address (RFC 6886, 3.2). */
export function encodeNatPmpAddress(): Uint8Array {
  return Uint8Array.of(VERSION, OPCODE_ADDRESS);
}

/** Requests a mapping of a UDP port (RFC 6886, 3.3). @param lifetimeS 0 deletes the mapping */
export function encodeNatPmpMap(internalPort: number, suggestedPort: number, lifetimeS: number): Uint8Array {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  bytes[1] = OPCODE_MAP_UDP;
  view.setUint16(4, internalPort);
  view.setUint16(6, suggestedPort);
  view.setUint32(8, lifetimeS);
  return bytes;
}

/** Null unless it is a response with this opcode and length. */
function replyView(bytes: Uint8Array, opcode: number, length: number): DataView | null {
  if (bytes[0] !== VERSION || bytes[1] !== REPLY_OPCODES + opcode) return null;
  if (bytes.length !== length) return null;
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function decodeNatPmpAddress(bytes: Uint8Array): NatPmpAddressReply | null {
  const view = replyView(bytes, OPCODE_ADDRESS, ADDRESS_REPLY_BYTES);
  return view === null ? null : { result: view.getUint16(2), externalHost: ipv4Text(view.getUint32(8)) };
}

export function decodeNatPmpMap(bytes: Uint8Array): NatPmpMapReply | null {
  const view = replyView(bytes, OPCODE_MAP_UDP, MAP_REPLY_BYTES);
  if (view === null) return null;
  return {
    result: view.getUint16(2),
    internalPort: view.getUint16(8),
    externalPort: view.getUint16(10),
    lifetimeS: view.getUint32(12),
  };
}

/** How long to wait for an answer, milliseconds: the first five of the nine intervals of RFC 6886, 3.1. */
const NAT_PMP_WAITS_MS = [250, 500, 1000, 2000, 4000];

export class NatPmpGrantor implements PortGrantor {
  readonly protocol = 'nat-pmp';
  readonly #router: Address;
  readonly #clock: Clock;

  constructor(router: Address, { clock }: { readonly clock: Clock }) {
    this.#router = router;
    this.#clock = clock;
  }

  async grant(
    internalPort: number,
    suggestedPort: number,
    lifetimeS: number,
    signal: AbortSignal,
  ): Promise<GrantedPort> {
    const readAddress = (bytes: Uint8Array): string | undefined => {
      const reply = decodeNatPmpAddress(bytes);
      if (reply === null) return undefined;
      if (reply.result !== 0) throw refused(`code ${reply.result}`);
      return reply.externalHost;
    };
    const host = await this.#ask(encodeNatPmpAddress(), readAddress, signal);
    const mapped = await this.#map(internalPort, suggestedPort, lifetimeS, signal);
    if (mapped.lifetimeS === 0 || mapped.externalPort === 0) throw refused('it granted no port');
    return { external: { host, port: mapped.externalPort }, lifetimeS: mapped.lifetimeS };
  }

  async release(internalPort: number, _externalPort: number, signal: AbortSignal): Promise<void> {
    // The external port must be 0 here (RFC 6886, 3.4).
    await this.#map(internalPort, 0, 0, signal);
  }

  #map(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<NatPmpMapReply> {
    const read = (bytes: Uint8Array): NatPmpMapReply | undefined => {
      const reply = decodeNatPmpMap(bytes);
      if (reply === null || reply.internalPort !== internalPort) return undefined;
      if (reply.result !== 0) throw refused(`code ${reply.result}`);
      return reply;
    };
    return this.#ask(encodeNatPmpMap(internalPort, suggestedPort, lifetimeS), read, signal);
  }

  #ask<T>(datagram: Uint8Array, read: (bytes: Uint8Array) => T | undefined, signal: AbortSignal): Promise<T> {
    return requestGateway(this.#clock, this.#router, { datagram, waitsMs: NAT_PMP_WAITS_MS, read }, signal);
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router rejected the NAT-PMP request: ${reason}.` });
}
