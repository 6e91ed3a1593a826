/** Asks a router for ports by PCP (RFC 6887). */
import type { Address } from '../../../foundation/address.ts';
import { equalBytes } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { askGateway } from './ask-gateway.ts';
import { decodePcpMapReply, encodePcpMap, isOtherVersion, PCP_NONCE_BYTES } from './pcp-messages.ts';
import type { GrantedPort, PortGrantor } from './types.ts';

/** How long an answer is awaited, milliseconds: the schedule of RFC 6887, 8.1.1, which would go on for ever. */
const PCP_WAITS_MS = [3000, 6000];

interface PcpDependencies {
  readonly clock: Clock;
  readonly randomBytes: (length: number) => Uint8Array;
}

export class PcpGrantor implements PortGrantor {
  readonly protocol = 'pcp';
  readonly #router: Address;
  readonly #ownHost: string;
  readonly #deps: PcpDependencies;
  /** By internal port: only who has the nonce can renew or release a mapping. */
  readonly #nonces = new Map<number, Uint8Array>();

  constructor(router: Address, ownHost: string, dependencies: PcpDependencies) {
    this.#router = router;
    this.#ownHost = ownHost;
    this.#deps = dependencies;
  }

  async grant(
    internalPort: number,
    suggestedPort: number,
    lifetimeS: number,
    signal: AbortSignal,
  ): Promise<GrantedPort> {
    const nonce = this.#nonces.get(internalPort) ?? this.#deps.randomBytes(PCP_NONCE_BYTES);
    this.#nonces.set(internalPort, nonce);
    const datagram = encodePcpMap({ nonce, ownHost: this.#ownHost, internalPort, suggestedPort, lifetimeS });
    const read = (bytes: Uint8Array): GrantedPort | undefined => {
      if (isOtherVersion(bytes)) throw refused('another version');
      const reply = decodePcpMapReply(bytes);
      if (reply === null || reply.internalPort !== internalPort || !equalBytes(reply.nonce, nonce)) return undefined;
      if (reply.result !== 0) throw refused(`code ${reply.result}`);
      if (lifetimeS > 0 && (reply.lifetimeS === 0 || reply.externalPort === 0)) throw refused('nothing was granted');
      return { external: { host: reply.externalHost, port: reply.externalPort }, lifetimeS: reply.lifetimeS };
    };
    return await askGateway(this.#deps.clock, this.#router, { datagram, waitsMs: PCP_WAITS_MS, read }, signal);
  }

  async release(internalPort: number, externalPort: number, signal: AbortSignal): Promise<void> {
    await this.grant(internalPort, externalPort, 0, signal);
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router refuses a port by PCP: ${reason}.` });
}
