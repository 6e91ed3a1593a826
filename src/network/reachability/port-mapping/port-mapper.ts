/** Requests port mappings from the router, renews them while this node runs, and deletes them when it stops. */
import { randomBytes } from 'node:crypto';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { type Backoff, backoff } from '../../../foundation/backoff.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { deadline } from '../../../foundation/deadline.ts';
import type { PortMappingState } from '../../../foundation/domain/directory.ts';
import type { MappingProtocol } from '../../../foundation/domain/reach.ts';
import { IP_SCOPE, inIpv4Network, ipScope } from '../../../foundation/ip.ts';
import type { Component } from '../../../foundation/lifecycle.ts';
import type { NodeParts } from '../../../foundation/node-parts.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { GATEWAY_PORT, type Gateway, type PortGrantor } from './gateway.ts';
import { NatPmpGrantor } from './nat-pmp.ts';
import { PcpGrantor } from './pcp.ts';
import { UpnpGrantor } from './upnp.ts';

/* The protocols, in the order in which they are tried. */

/** An address of an interface of this machine, with its network: `192.168.1.7/24`. */
interface InterfaceAddress {
  readonly address: string;
  readonly cidr: string | null;
}

/** Finds a router that maps ports; null if there is none. Called only after the finders before it failed. */
type GrantorFinder = (signal: AbortSignal) => Promise<PortGrantor | null>;

/**
 * PCP and NAT-PMP at the router of the default route, then UPnP at a router of this network.
 * @param random returns a number from 0 to below 1
 */
export function grantorFinders(
  { host, ownHost }: Gateway,
  clock: Clock,
  random: () => number,
  interfaces: () => readonly InterfaceAddress[],
): GrantorFinder[] {
  const mayBeRouter = (router: string): boolean =>
    ipScope(router) === IP_SCOPE.private &&
    router !== ownHost &&
    interfaces().some(({ address, cidr }) => address === ownHost && cidr !== null && inIpv4Network(router, cidr));
  const router = host === null ? null : { host, port: GATEWAY_PORT };
  return [
    async () => router && new PcpGrantor(router, ownHost, clock, randomBytes),
    async () => router && new NatPmpGrantor(router, { clock }),
    (signal) => UpnpGrantor.find({ ownHost, mayBeRouter }, clock, random, signal),
  ];
}

/** Requested lifetime of a mapping, seconds. A node that crashes leaves the port open for at most this time. */
export const MAPPING_LIFETIME_S = 600;
/** Bounds of the lifetime that a router grants, seconds. They determine when to renew. */
const MIN_LIFETIME_S = 60;
const MAX_LIFETIME_S = 86_400;
/** Total time to find a router and to obtain the mappings, milliseconds. */
const MAPPING_TIMEOUT_MS = 60_000;
/** Maximum time that deleting the mappings may delay a stop, milliseconds. */
const RELEASE_TIMEOUT_MS = 1500;
/** How often to check for another router, milliseconds. */
export const GATEWAY_CHECK_MS = 5000;
/** Pauses before retrying after a router mapped no port. */
const RETRY: Backoff = { firstMs: 60_000, maxMs: 30 * 60_000 };

/** A port of the router that is mapped to a port of this node. */
export interface MappedPort {
  readonly protocol: MappingProtocol;
  readonly internalPort: number;
  readonly external: Address;
  /** When the mapping expires unless it is renewed, Unix milliseconds. */
  readonly expiresAt: number;
}

export interface PortMapperView {
  readonly state: PortMappingState;
  readonly ports: readonly MappedPort[];
}

interface PortMapperDependencies extends NodeParts {
  /** The UDP ports of this node to map. */
  readonly ports: () => readonly number[];
  /** Finds the current router; null if no router should be asked. */
  readonly findGateway: () => Promise<Gateway | null>;
  /** Finders of routers that map ports, in order of preference. */
  readonly grantors: (gateway: Gateway) => readonly ((signal: AbortSignal) => Promise<PortGrantor | null>)[];
  /** Called after each change with the mappings that are reachable from the Internet. */
  readonly onMapped: (ports: readonly MappedPort[]) => void;
}

/** True if the router's external address is public, so that there is no second NAT. */
function isPublic({ external }: MappedPort): boolean {
  return ipScope(external.host) === IP_SCOPE.public;
}

function sameGateway(a: Gateway | null, b: Gateway | null): boolean {
  return a?.host === b?.host && a?.ownHost === b?.ownHost;
}

export class PortMapper implements Component {
  readonly #deps: PortMapperDependencies;
  readonly #stopping = new AbortController();
  #gateway: Gateway | null = null;
  #grantor: PortGrantor | null = null;
  #ports: readonly MappedPort[] = [];
  #state: PortMappingState = 'off';
  #failures = 0;
  #lastReport = '';
  #passes: RepeatingTask | null = null;
  #gatewayChecks: RepeatingTask | null = null;

  constructor(dependencies: PortMapperDependencies) {
    this.#deps = dependencies;
  }

  /** The current mappings. */
  view(): PortMapperView {
    return { state: this.#state, ports: this.#ports };
  }

  /** Starts searching for a router, without waiting for the result. */
  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#state = 'searching';
    const onError = (error: unknown): void => log.warn({ error }, 'cannot request port mappings from the router');
    const pass = { firstMs: 0, periodMs: RETRY.firstMs, onError };
    this.#passes = every(clock, pass, () => this.#pass());
    const look = { periodMs: GATEWAY_CHECK_MS, onError };
    this.#gatewayChecks = every(clock, look, () => this.#checkGateway());
  }

  /** Deletes the mappings, if the router answers in time. */
  async stop(): Promise<void> {
    this.#gatewayChecks?.stop();
    this.#passes?.stop();
    this.#stopping.abort();
    await Promise.all([this.#gatewayChecks?.idle(), this.#passes?.idle()]);
    await this.#release();
    this.#state = 'off';
  }

  async #release(): Promise<void> {
    const grantor = this.#grantor;
    const ports = this.#ports;
    this.#ports = [];
    if (grantor === null) return;
    using limit = deadline(this.#deps.clock, RELEASE_TIMEOUT_MS);
    const released = ports.map(({ internalPort, external }) =>
      grantor.release(internalPort, external.port, limit.signal),
    );
    const failed = (await Promise.allSettled(released)).filter(({ status }) => status === 'rejected').length;
    if (failed > 0)
      this.#deps.log.debug({ ports: failed }, 'the router did not delete port mappings: they will expire');
  }

  /** In another network, or with another address, mappings of the previous router are useless. */
  async #checkGateway(): Promise<void> {
    const gateway = await this.#deps.findGateway();
    if (!sameGateway(gateway, this.#gateway)) this.#passes?.soon();
  }

  /** Renews the mappings or requests new ones. @returns milliseconds until the next pass */
  async #pass(): Promise<number> {
    const gateway = await this.#deps.findGateway();
    if (!sameGateway(gateway, this.#gateway)) {
      this.#gateway = gateway;
      this.#grantor = null;
      this.#ports = [];
      this.#failures = 0;
    }
    if (gateway === null) return this.#finishPass('off', RETRY.maxMs);
    using limit = deadline(this.#deps.clock, MAPPING_TIMEOUT_MS, this.#stopping.signal);
    const isGranted = (await this.#renew(limit.signal)) || (await this.#findGrantor(gateway, limit.signal));
    if (this.#stopping.signal.aborted) return RETRY.firstMs;
    if (!isGranted) return this.#finishPass('none', backoff(RETRY, ++this.#failures));
    this.#failures = 0;
    const now = this.#deps.clock.monotonic();
    const leftMs = Math.min(...this.#ports.map(({ expiresAt }) => expiresAt - now));
    return this.#finishPass(this.#ports.every(isPublic) ? 'mapped' : 'double_nat', leftMs / 2);
  }

  /** Renews at the router that granted the mappings. All are sent again, because a restarted router has lost them. */
  async #renew(signal: AbortSignal): Promise<boolean> {
    if (this.#grantor === null) return false;
    return await this.#grantAll(this.#grantor, signal);
  }

  async #findGrantor(gateway: Gateway, signal: AbortSignal): Promise<boolean> {
    this.#grantor = null;
    this.#ports = [];
    for (const find of this.#deps.grantors(gateway)) {
      const grantor = await find(signal).catch((error: unknown) => this.#refused(error));
      if (signal.aborted) return false;
      if (grantor !== null && (await this.#grantAll(grantor, signal))) return true;
    }
    return false;
  }

  #refused(error: unknown): null {
    if (!this.#stopping.signal.aborted) this.#deps.log.debug({ error }, 'a router refused to map ports');
    return null;
  }

  /** Requests all ports. If the router refuses one, the mappings granted before it are deleted. */
  async #grantAll(grantor: PortGrantor, signal: AbortSignal): Promise<boolean> {
    const before = new Map(this.#ports.map((port) => [port.internalPort, port]));
    const granted: MappedPort[] = [];
    this.#grantor = grantor;
    try {
      for (const internalPort of this.#deps.ports()) {
        const suggested = before.get(internalPort)?.external.port ?? internalPort;
        const { external, lifetimeS } = await grantor.grant(internalPort, suggested, MAPPING_LIFETIME_S, signal);
        const boundedS = Math.min(MAX_LIFETIME_S, Math.max(MIN_LIFETIME_S, lifetimeS));
        const expiresAt = this.#deps.clock.monotonic() + boundedS * 1000;
        granted.push({ protocol: grantor.protocol, internalPort, external, expiresAt });
      }
      this.#ports = granted;
      return true;
    } catch (error) {
      this.#refused(error);
      // `stop` deletes them with the rest.
      this.#ports = [
        ...granted,
        ...this.#ports.filter((port) => granted.every(({ internalPort }) => internalPort !== port.internalPort)),
      ];
      if (this.#stopping.signal.aborted) return false;
      await this.#release();
      this.#grantor = null;
      return false;
    }
  }

  #finishPass(state: PortMappingState, nextMs: number): number {
    const { log, onMapped } = this.#deps;
    this.#state = state;
    const report = JSON.stringify([state, this.#ports.map(({ external, internalPort }) => [internalPort, external])]);
    if (report === this.#lastReport) return nextMs;
    this.#lastReport = report;
    const [first] = this.#ports;
    const ports = this.#ports.map(({ external }) => formatAddress(external));
    if (state === 'mapped') log.info({ protocol: first?.protocol, ports }, 'the router maps ports to this node');
    if (state === 'double_nat')
      log.warn(
        { protocol: first?.protocol, ports },
        'the external address of the router is not public: there is a second NAT',
      );
    onMapped(state === 'mapped' ? this.#ports : []);
    return nextMs;
  }
}
