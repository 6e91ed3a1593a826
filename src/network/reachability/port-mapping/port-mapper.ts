/** Has the router lead ports of its own to ours, keeps them as long as this node runs, and gives them back. */
import { randomBytes } from 'node:crypto';
import { type Address, formatAddress } from '../../../foundation/address.ts';
import { type Backoff, backoff } from '../../../foundation/backoff.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { deadline } from '../../../foundation/deadline.ts';
import type { PortMappingState } from '../../../foundation/domain/directory.ts';
import type { MappingProtocol } from '../../../foundation/domain/reach.ts';
import { IP_SCOPE, inIpv4Network, ipScope } from '../../../foundation/ip.ts';
import type { Component } from '../../../foundation/lifecycle.ts';
import type { Log } from '../../../foundation/log.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import { GATEWAY_PORT, type Gateway, type PortGrantor } from './gateway.ts';
import { NatPmpGrantor } from './nat-pmp.ts';
import { PcpGrantor } from './pcp.ts';
import { UpnpGrantor } from './upnp.ts';

/* Who may grant ports in a network, in the order in which they are asked. */

/** An address of an interface of this machine, with its network: `192.168.1.7/24`. */
interface InterfaceAddress {
  readonly address: string;
  readonly cidr: string | null;
}

/** Ways to a grantor; each is looked for only when those before it grant nothing, and is null where there is none. */
type GrantorFinder = (signal: AbortSignal) => Promise<PortGrantor | null>;

/**
 * PCP and NAT-PMP at the router of the default route, and UPnP at a router in our network that answers.
 * @param random returns a number from 0 to below 1
 */
export function grantorsAt(
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

/** For how long a port is asked for, seconds. A node that ends without a word leaves it open no longer than this. */
export const MAPPING_LIFETIME_S = 600;
/** What a router grants for less or more is renewed as if it were so long, seconds. */
const MIN_LIFETIME_S = 60;
const MAX_LIFETIME_S = 86_400;
/** How long finding a router and being granted the ports may take in all, milliseconds. */
const MAPPING_TIMEOUT_MS = 60_000;
/** How long giving them back may hold up a stop, milliseconds. */
const RELEASE_TIMEOUT_MS = 1500;
/** How often the routes are looked at for another router, milliseconds. */
export const GATEWAY_LOOK_MS = 5000;
/** When a router that grants nothing is asked again. */
const RETRY: Backoff = { firstMs: 60_000, maxMs: 30 * 60_000 };

/** A port of the router that leads to one of ours. */
export interface MappedPort {
  readonly protocol: MappingProtocol;
  readonly internalPort: number;
  readonly external: Address;
  /** When it ends unless it is renewed, in the clock's time. */
  readonly expiresAt: number;
}

export interface PortMapperView {
  readonly state: PortMappingState;
  readonly ports: readonly MappedPort[];
}

interface PortMapperDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Our UDP ports that others are to reach. */
  readonly ports: () => readonly number[];
  /** The router of this moment; null where nobody is to be asked. */
  readonly findGateway: () => Promise<Gateway | null>;
  /** Those who may grant ports there, the best first; they are looked for as they are needed. */
  readonly grantors: (gateway: Gateway) => readonly ((signal: AbortSignal) => Promise<PortGrantor | null>)[];
  /** Told what is mapped and leads to the Internet, after each change. */
  readonly onMapped: (ports: readonly MappedPort[]) => void;
}

/** True where the outer address of the router is one of the Internet, and so no further translation stands behind it. */
function isOutside({ external }: MappedPort): boolean {
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
  #told = '';
  #passes: RepeatingTask | null = null;
  #looks: RepeatingTask | null = null;

  constructor(dependencies: PortMapperDependencies) {
    this.#deps = dependencies;
  }

  /** What is mapped now. */
  view(): PortMapperView {
    return { state: this.#state, ports: this.#ports };
  }

  /** Begins to look for a router; nobody waits for it. */
  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#state = 'searching';
    const onError = (error: unknown): void => log.warn({ error }, 'the router could not be asked for ports');
    const pass = { firstMs: 0, periodMs: RETRY.firstMs, onError };
    this.#passes = every(clock, pass, () => this.#pass());
    const look = { periodMs: GATEWAY_LOOK_MS, onError };
    this.#looks = every(clock, look, () => this.#look());
  }

  /** Gives the ports back, as far as the router answers in a short time. */
  async stop(): Promise<void> {
    this.#looks?.stop();
    this.#passes?.stop();
    this.#stopping.abort();
    await Promise.all([this.#looks?.idle(), this.#passes?.idle()]);
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
      this.#deps.log.debug({ ports: failed }, 'the router did not take ports back: they end by themselves');
  }

  /** Another network, or another address in it: what the old router granted is not ours any more. */
  async #look(): Promise<void> {
    const gateway = await this.#deps.findGateway();
    if (!sameGateway(gateway, this.#gateway)) this.#passes?.soon();
  }

  /** Renews what is granted, or asks anew. @returns milliseconds until the next turn */
  async #pass(): Promise<number> {
    const gateway = await this.#deps.findGateway();
    if (!sameGateway(gateway, this.#gateway)) {
      this.#gateway = gateway;
      this.#grantor = null;
      this.#ports = [];
      this.#failures = 0;
    }
    if (gateway === null) return this.#concluded('off', RETRY.maxMs);
    using limit = deadline(this.#deps.clock, MAPPING_TIMEOUT_MS, this.#stopping.signal);
    const isGranted = (await this.#renew(limit.signal)) || (await this.#ask(gateway, limit.signal));
    if (this.#stopping.signal.aborted) return RETRY.firstMs;
    if (!isGranted) return this.#concluded('none', backoff(RETRY, ++this.#failures));
    this.#failures = 0;
    const now = this.#deps.clock.now();
    const leftMs = Math.min(...this.#ports.map(({ expiresAt }) => expiresAt - now));
    return this.#concluded(this.#ports.every(isOutside) ? 'mapped' : 'double_nat', leftMs / 2);
  }

  /** Asks the router that granted before. A restarted one has forgotten everything, and is told all of it again. */
  async #renew(signal: AbortSignal): Promise<boolean> {
    if (this.#grantor === null) return false;
    return await this.#grantAll(this.#grantor, signal);
  }

  async #ask(gateway: Gateway, signal: AbortSignal): Promise<boolean> {
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
    if (!this.#stopping.signal.aborted) this.#deps.log.debug({ error }, 'a router grants no ports');
    return null;
  }

  /** All ports or none: what a router granted before it refused is given back. */
  async #grantAll(grantor: PortGrantor, signal: AbortSignal): Promise<boolean> {
    const before = new Map(this.#ports.map((port) => [port.internalPort, port]));
    const granted: MappedPort[] = [];
    this.#grantor = grantor;
    try {
      for (const internalPort of this.#deps.ports()) {
        const suggested = before.get(internalPort)?.external.port ?? internalPort;
        const { external, lifetimeS } = await grantor.grant(internalPort, suggested, MAPPING_LIFETIME_S, signal);
        const boundedS = Math.min(MAX_LIFETIME_S, Math.max(MIN_LIFETIME_S, lifetimeS));
        const expiresAt = this.#deps.clock.now() + boundedS * 1000;
        granted.push({ protocol: grantor.protocol, internalPort, external, expiresAt });
      }
      this.#ports = granted;
      return true;
    } catch (error) {
      this.#refused(error);
      // At a stop they are given back with all others.
      this.#ports = [
        ...granted,
        ...this.#ports.filter((one) => granted.every((two) => two.internalPort !== one.internalPort)),
      ];
      if (this.#stopping.signal.aborted) return false;
      await this.#release();
      this.#grantor = null;
      return false;
    }
  }

  #concluded(state: PortMappingState, nextMs: number): number {
    const { log, onMapped } = this.#deps;
    this.#state = state;
    const told = JSON.stringify([state, this.#ports.map(({ external, internalPort }) => [internalPort, external])]);
    if (told === this.#told) return nextMs;
    this.#told = told;
    const [first] = this.#ports;
    const ports = this.#ports.map(({ external }) => formatAddress(external));
    if (state === 'mapped') log.info({ protocol: first?.protocol, ports }, 'the router leads ports to this node');
    if (state === 'double_nat')
      log.warn(
        { protocol: first?.protocol, ports },
        'the router has no address of the Internet: another one is before it',
      );
    onMapped(state === 'mapped' ? this.#ports : []);
    return nextMs;
  }
}
