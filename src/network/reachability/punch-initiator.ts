/** Connects to a node that cannot be dialed directly, through its helpers. */

import { randomBytes } from 'node:crypto';
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { NodeAbsent } from '../peers/dial.ts';
import { BIRTHDAY_TIMEOUT_MS, type ClientPool, type EngineConnection } from '../transport/engine-connection.ts';
import type { Connection } from '../transport/types.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import type { ObservedNode } from './helper.ts';
import { isPublicIpv6 } from './interface-addresses.ts';
import { hasStablePort } from './nat.ts';
import { randomTargets } from './opening.ts';
import type { PortLender } from './port-lender.ts';
import { mayDialAt, type PunchGuard } from './punch-guard.ts';
import type { Introduced } from './punch-responder.ts';
import { waitForWitnesses } from './reachable-helpers.ts';
import { ATTEMPT_BYTES, decodeHelperReply, encodeHelperRequest, type HelperReply, type Means } from './signals.ts';
import { dialOverTurn, type TurnServers } from './turn/turn-servers.ts';

/**
 * Timeout of a dial to a punched address, milliseconds. After the first failure another port is opened with the full
 * hop limit.
 */
export const PUNCH_DIAL_MS = 1_500;
/** Timeout of a dial to a relayed session, milliseconds. */
export const RELAY_DIAL_MS = 5_000;

/** Head start of all other paths over a hairpin path (through the router and back), milliseconds. */
export const HAIRPIN_DELAY_MS = 1_000;

export interface PunchOptions {
  readonly signal?: AbortSignal;
  /** False if an equally good path is already connected. */
  readonly isWanted?: () => boolean;
  /** Called when the node has answered through the first helper. */
  readonly onAnswer?: () => void;
}

interface PunchInitiatorDependencies {
  readonly clock: Clock;
  readonly lender: Pick<PortLender, 'mapping' | 'lend'>;
  readonly pool: Pick<ClientPool, 'prepare' | 'dial'>;
  readonly guard: PunchGuard;
  /** This node's TURN servers. */
  readonly turn: TurnServers;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** Sends a request to a helper, over a connection from the socket that all dials use. */
  readonly request: (helper: ObservedNode, body: Uint8Array, signal: AbortSignal | undefined) => Promise<Uint8Array>;
  /** Dials an address from the same socket. */
  readonly dial: (address: Address, nodeKey: Uint8Array, how: PunchDialOptions) => Promise<Connection>;
  /** The public IPv6 address and port that the same socket uses for a destination; null if there is none. */
  readonly ownIpv6: (to: Address) => Promise<Address | null>;
  /** Whether packets to a host leave through a borrowed port. Its host is then no router that both nodes share. */
  readonly isBorrowed?: (host: string) => boolean;
  /** Adopts an engine connection that was opened with another socket. */
  readonly adopt: (connection: Introduced) => Connection;
}

export interface PunchDialOptions {
  readonly kind: PathKind;
  /** The peer's IP address as a helper sees it. */
  readonly source: string;
  /** The address outside this machine that packets are sent to. */
  readonly remote: Address;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** One attempt to reach one node. */
interface PunchAttempt {
  readonly nodeKey: Uint8Array;
  readonly attempt: Uint8Array;
  readonly signal: AbortSignal | undefined;
}

type CalledReply = HelperReply & { readonly called: NonNullable<HelperReply['called']> };

export class PunchInitiator {
  readonly #deps: PunchInitiatorDependencies;

  constructor(dependencies: PunchInitiatorDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Dials a node by hole punching; never over a relay.
   * @param helpers of that node: the first one introduces, the rest are witnesses if random ports are needed
   * @throws SvcError `connect_failed` if only a relay can work, `rate_limited`, `timeout`, `cancelled`; `NodeAbsent` if
   *   the first helper has no connection to the node
   */
  async punch(
    nodeKey: Uint8Array,
    helpers: readonly ObservedNode[],
    { signal, isWanted = () => true, onAnswer = () => {} }: PunchOptions = {},
  ): Promise<Connection> {
    const [helper, ...others] = helpers;
    if (helper === undefined) throw new SvcError('connect_failed');
    const target = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    // Both nodes learn where witnesses see the other node. A witness that fails provides no evidence.
    const answers = others.map((other) =>
      this.#introduce(target, other, 'witness').then(
        () => true,
        () => false,
      ),
    );
    const witnesses = waitForWitnesses(answers, this.#deps.clock);
    // The introducing helper alone is not enough.
    if (!hasStablePort(this.#deps.lender.mapping) && others.length > 0) {
      this.#deps.pool.prepare();
      await witnesses;
    }
    const first = await this.#introduce(target, helper, 'punch');
    onAnswer();
    const { outcome } = first.called;
    if (outcome === 'ready') {
      const { called, seenAt } = first;
      const isNear = called.seenAt.host === seenAt.host && this.#deps.isBorrowed?.(seenAt.host) !== true;
      return await (isNear ? this.#dialHairpin(target, first, isWanted) : this.#dialPunched(target, helper, first));
    }
    if (outcome !== 'listen') throw new SvcError('connect_failed');
    await witnesses;
    return await this.#listen(target, helper, first);
  }

  /**
   * Dials a node over IPv6. There is no NAT, but firewalls accept only replies.
   * @param at the node's public IPv6 address
   * @throws SvcError as `punch`
   */
  async punchOverIpv6(
    nodeKey: Uint8Array,
    helper: ObservedNode,
    at: Address,
    { signal, onAnswer = () => {} }: Omit<PunchOptions, 'isWanted'> = {},
  ): Promise<Connection> {
    const from = await this.#deps.ownIpv6(at);
    if (from === null)
      throw new SvcError('connect_failed', { message: 'This node has no IPv6 route to the Internet.' });
    const target = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    const { outcome, listensAt, seenAt } = (await this.#introduce(target, helper, 'ipv6', { listensAt: from })).called;
    onAnswer();
    if (outcome !== 'ready' || listensAt === null || !isPublicIpv6(listensAt)) throw new SvcError('connect_failed');
    return await this.#dial(target, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
  }

  /**
   * Dials a node over a relayed session at one of its helpers. The relay forwards encrypted packets.
   * @throws SvcError `connect_failed`, `rate_limited`, `timeout`, `cancelled`; `NodeAbsent`
   */
  async relay(nodeKey: Uint8Array, helper: ObservedNode, signal?: AbortSignal): Promise<Connection> {
    const target = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    const { called, relayPort } = await this.#introduce(target, helper, 'relay');
    if (called.outcome !== 'ready' || relayPort === null) throw new SvcError('connect_failed');
    const address = { host: helper.address.host, port: relayPort };
    return await this.#dial(target, address, 'relay', called.seenAt, RELAY_DIAL_MS);
  }

  /**
   * Dials a node through this node's TURN server, or the other node's if this node has none. The server forwards
   * encrypted packets.
   * @throws SvcError as `relay`
   */
  async turn(nodeKey: Uint8Array, helper: ObservedNode, signal?: AbortSignal): Promise<Connection> {
    const target = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    if (!this.#deps.turn.isAvailable) {
      const { called } = await this.#introduce(target, helper, 'turn');
      if (called.outcome !== 'ready' || called.listensAt === null) throw new SvcError('connect_failed');
      return await this.#dial(target, called.listensAt, 'turn', called.seenAt, RELAY_DIAL_MS);
    }
    const { seenAt } = (await this.#introduce(target, helper, 'witness')).called;
    if (!mayDialAt({ host: seenAt.host, port: FIRST_MAPPED_PORT }, helper.address)) throw invalidAddressError();
    return await dialOverTurn(this.#deps.turn, { peerHost: seenAt.host, token: target.attempt }, async (carrier) => {
      const { called } = await this.#introduce(target, helper, 'turn', { listensAt: carrier.relayed });
      if (called.outcome !== 'ready') throw new SvcError('connect_failed');
      return await this.#dial(target, carrier.local, 'turn', seenAt, RELAY_DIAL_MS, carrier.server);
    });
  }

  async #introduce(
    { nodeKey, attempt, signal }: PunchAttempt,
    helper: ObservedNode,
    means: Means,
    more: { readonly listensAt?: Address; readonly needsFullHops?: boolean } = {},
  ): Promise<CalledReply> {
    const { listensAt = null, needsFullHops = false } = more;
    this.#deps.guard.markCalled(nodeKey);
    const { mapping } = this.#deps.lender;
    const request = encodeHelperRequest({
      kind: 'introduce',
      to: nodeKey,
      attempt,
      means,
      mapping,
      listensAt,
      needsFullHops,
    });
    const reply = decodeHelperReply(await this.#deps.request(helper, request, signal));
    if (reply === null) throw new SvcError('protocol_error');
    const { called, relayPort } = reply;
    if (called === null) throw new NodeAbsent();
    if (called.outcome === 'refused') throw new SvcError('connect_failed');
    // These addresses are untrusted, and handshakes are sent to them.
    if (called.listensAt !== null && !mayDialAt(called.listensAt, helper.address)) throw invalidAddressError();
    if (relayPort !== null && relayPort < FIRST_MAPPED_PORT) throw invalidAddressError();
    this.#deps.guard.addWitness(nodeKey, called.seenAt.host, helper.address);
    return { ...reply, called };
  }

  #dial(
    { nodeKey, signal }: PunchAttempt,
    address: Address,
    kind: PathKind,
    seenAt: Address,
    timeoutMs: number,
    remote: Address = address,
  ) {
    const options = { kind, source: seenAt.host, remote, timeoutMs, ...(signal === undefined ? {} : { signal }) };
    return this.#deps.dial(address, nodeKey, options);
  }

  async #dialPunched(target: PunchAttempt, helper: ObservedNode, first: CalledReply): Promise<Connection> {
    const { listensAt, isSprayed, seenAt } = first.called;
    if (listensAt === null) throw new SvcError('protocol_error');
    if (isSprayed) return await this.#dialFromAllSockets(target, listensAt, seenAt);
    try {
      return await this.#dial(target, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
    } catch (error) {
      if (target.signal?.aborted === true) throw error;
    }
    // The opening packets may not have left the peer's network.
    const again = await this.#introduce(target, helper, 'punch', { needsFullHops: true });
    if (again.called.outcome !== 'ready' || again.called.listensAt === null) throw new SvcError('connect_failed');
    return await this.#dial(target, again.called.listensAt, 'punched', again.called.seenAt, PUNCH_DIAL_MS);
  }

  /**
   * Both nodes are behind the same router or carrier NAT. A hairpin path is longer than one within the local network,
   * so the latter gets a head start.
   */
  async #dialHairpin(
    target: PunchAttempt,
    { called: { listensAt, isSprayed, seenAt } }: CalledReply,
    isWanted: () => boolean,
  ): Promise<Connection> {
    if (listensAt === null) throw new SvcError('protocol_error');
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(HAIRPIN_DELAY_MS, resolve);
    try {
      await abortable(promise, target.signal);
    } finally {
      timer.cancel();
    }
    if (!isWanted()) throw new SvcError('cancelled');
    if (isSprayed) return await this.#dialFromAllSockets(target, listensAt, seenAt);
    return await this.#dial(target, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
  }

  async #dialFromAllSockets(
    { nodeKey, signal }: PunchAttempt,
    listensAt: Address,
    seenAt: Address,
  ): Promise<Connection> {
    // Hundreds of handshakes are sent, so only to the host where helpers see the node.
    if (listensAt.host !== seenAt.host || !this.#deps.guard.maySpray(nodeKey, seenAt.host))
      throw new SvcError('connect_failed');
    const native = await this.#deps.pool.dial(listensAt, nodeKey, signal);
    return this.#adopt(native, true, seenAt);
  }

  #adopt(native: EngineConnection, outbound: boolean, seenAt: Address): Connection {
    return this.#deps.adopt({ native, outbound, kind: 'punched', source: seenAt.host });
  }

  /** The peer's external port varies. It dials from all its sockets, and this node opens random ports of its host. */
  async #listen(target: PunchAttempt, helper: ObservedNode, { called: { seenAt } }: CalledReply): Promise<Connection> {
    const { lender, guard, random } = this.#deps;
    const { nodeKey, signal } = target;
    if (!guard.mayPunch(nodeKey, seenAt, helper.address)) throw new SvcError('connect_failed');
    // Without a NAT, packets from any port arrive.
    const isOpen = lender.mapping === 'open';
    if (!isOpen && !guard.maySpray(nodeKey, seenAt.host)) throw new SvcError('connect_failed');
    const targets = isOpen ? [seenAt] : randomTargets(seenAt.host, random);
    const { address, port } = await lender.lend({ expectedKey: nodeKey, targets, needsFullHops: false, ownIpv6: null });
    try {
      const { called } = await this.#introduce(target, helper, 'listening', { listensAt: address });
      if (called.outcome !== 'dialling') throw new SvcError('connect_failed');
    } catch (error) {
      detach(port.close());
      throw error;
    }
    return this.#adopt(await port.connection(BIRTHDAY_TIMEOUT_MS, signal), false, seenAt);
  }
}

function invalidAddressError(): SvcError {
  return new SvcError('connect_failed', {
    message: 'A helper sent an address that must not be dialed: a private host, or a port below 1024.',
  });
}
