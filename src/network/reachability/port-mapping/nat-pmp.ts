/** Asks a router for ports by NAT-PMP (RFC 6886). */
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { askGateway } from './ask-gateway.ts';
import {
  decodeNatPmpAddress,
  decodeNatPmpMap,
  encodeNatPmpAddress,
  encodeNatPmpMap,
  type NatPmpMapReply,
} from './nat-pmp-messages.ts';
import type { GrantedPort, PortGrantor } from './types.ts';

/** How long an answer is awaited, milliseconds: the first five of the nine times of RFC 6886, 3.1. */
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
    if (mapped.lifetimeS === 0 || mapped.externalPort === 0) throw refused('nothing was granted');
    return { external: { host, port: mapped.externalPort }, lifetimeS: mapped.lifetimeS };
  }

  async release(internalPort: number, _externalPort: number, signal: AbortSignal): Promise<void> {
    // The outer port has to be 0 here (RFC 6886, 3.4).
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
    return askGateway(this.#clock, this.#router, { datagram, waitsMs: NAT_PMP_WAITS_MS, read }, signal);
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router refuses a port by NAT-PMP: ${reason}.` });
}
