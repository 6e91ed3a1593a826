/** Reaches a node that nobody can dial, through helpers that it keeps connections to. */
import { randomBytes } from 'node:crypto';
import type { Address } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { NodeAbsent } from '../peers/dial.ts';
import type { EngineConnection } from '../transport/quic/engine.ts';
import type { Connection } from '../transport/types.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import { BIRTHDAY_TIMEOUT_MS, type ClientPool } from './client-pool.ts';
import type { ObservedNode } from './helper.ts';
import { isPublicIpv6 } from './interface-addresses.ts';
import { hasStablePort } from './nat.ts';
import { randomTargets } from './opening.ts';
import type { PortLender } from './port-lender.ts';
import { mayDialAt, type PunchGuard } from './punch-guard.ts';
import type { Introduced } from './punch-responder.ts';
import { waitForWitnesses } from './reachable-helpers.ts';
import { ATTEMPT_BYTES, decodeHelperReply, encodeHelperRequest, type HelperReply, type Means } from './signals.ts';
import { dialOverTurn, type TurnAccess } from './turn/turn-servers.ts';

/** How long a punched address is dialled, milliseconds; after the first try another port is opened with more hops. */
export const PUNCH_DIAL_MS = 1_500;
/** How long a relayed session is dialled, milliseconds. */
export const RELAY_DIAL_MS = 5_000;

/** Head start of all other ways over one out of our router and in again, milliseconds. */
export const HAIRPIN_DELAY_MS = 1_000;

export interface PunchOptions {
  readonly signal?: AbortSignal;
  /** False where another way is as good, and led there first. */
  readonly isWanted?: () => boolean;
  /** Told when the node has answered by the first helper, whatever it said. */
  readonly answered?: () => void;
}

interface CallerDependencies {
  readonly clock: Clock;
  readonly lender: Pick<PortLender, 'mapping' | 'lend'>;
  readonly pool: Pick<ClientPool, 'prepare' | 'dial'>;
  readonly guard: PunchGuard;
  /** Our own TURN servers. */
  readonly turn: TurnAccess;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Sends a request to a helper, over the connection that stands or a new one from the socket that all dials use. */
  readonly request: (helper: ObservedNode, body: Uint8Array, signal: AbortSignal | undefined) => Promise<Uint8Array>;
  /** Dials an address from that same socket. */
  readonly dial: (address: Address, nodeKey: Uint8Array, how: DialledHow) => Promise<Connection>;
  /** The public IPv6 address and port that packets of that socket to another one come from; null for none. */
  readonly ownIpv6: (to: Address) => Promise<Address | null>;
  /** Takes a connection of the engine that came over another socket. */
  readonly adopt: (connection: Introduced) => Connection;
}

export interface DialledHow {
  readonly kind: PathKind;
  /** The other node's IP address as a helper sees it. */
  readonly source: string;
  /** Who it is that packets go to, as others see it. */
  readonly remote: Address;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** What is said of one node over one helper. */
interface Talk {
  readonly nodeKey: Uint8Array;
  readonly attempt: Uint8Array;
  readonly signal: AbortSignal | undefined;
}

type CalledReply = HelperReply & { readonly called: NonNullable<HelperReply['called']> };

export class PunchInitiator {
  readonly #deps: CallerDependencies;

  constructor(dependencies: CallerDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Punches a way to a node; never a relayed one.
   * @param helpers of that node: the first introduces, the others are witnesses where random ports are needed
   * @throws SvcError `connect_failed` where nothing but a relay is left, `rate_limited`, `timeout`, `cancelled`;
   *   `NodeAbsent` where the first helper has no connection to the node
   */
  async punch(
    nodeKey: Uint8Array,
    helpers: readonly ObservedNode[],
    { signal, isWanted = () => true, answered = () => {} }: PunchOptions = {},
  ): Promise<Connection> {
    const [helper, ...others] = helpers;
    if (helper === undefined) throw new SvcError('connect_failed');
    const talk = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    // Both sides learn from them where the other is seen. One that fails says nothing, and nothing is opened on that.
    const isHeard = others.map((other) =>
      this.#ask(talk, other, 'witness').then(
        () => true,
        () => false,
      ),
    );
    const witnesses = waitForWitnesses(isHeard, this.#deps.clock);
    // One alone is no witness.
    if (!hasStablePort(this.#deps.lender.mapping) && others.length > 0) {
      this.#deps.pool.prepare();
      await witnesses;
    }
    const first = await this.#ask(talk, helper, 'punch');
    answered();
    const { outcome } = first.called;
    if (outcome === 'ready') {
      const isNear = first.called.seenAt.host === first.seenAt.host;
      return await (isNear ? this.#dialHairpin(talk, first, isWanted) : this.#dialPunched(talk, helper, first));
    }
    if (outcome !== 'listen') throw new SvcError('connect_failed');
    await witnesses;
    return await this.#listen(talk, helper, first);
  }

  /**
   * Punches a way over IPv6, where nothing translates and firewalls let in only answers.
   * @param at where the node has a public IPv6 address
   * @throws SvcError as `punch`
   */
  async punchOverIpv6(
    nodeKey: Uint8Array,
    helper: ObservedNode,
    at: Address,
    { signal, answered = () => {} }: Omit<PunchOptions, 'isWanted'> = {},
  ): Promise<Connection> {
    const from = await this.#deps.ownIpv6(at);
    if (from === null) throw new SvcError('connect_failed', { message: 'This node has no way out over IPv6.' });
    const talk = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    const { outcome, listensAt, seenAt } = (await this.#ask(talk, helper, 'ipv6', { listensAt: from })).called;
    answered();
    if (outcome !== 'ready' || listensAt === null || !isPublicIpv6(listensAt)) throw new SvcError('connect_failed');
    return await this.#dial(talk, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
  }

  /**
   * Reaches a node by a relayed session at one of its helpers, which carries sealed packets.
   * @throws SvcError `connect_failed`, `rate_limited`, `timeout`, `cancelled`; `NodeAbsent`
   */
  async relay(nodeKey: Uint8Array, helper: ObservedNode, signal?: AbortSignal): Promise<Connection> {
    const talk = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    const { called, relayPort } = await this.#ask(talk, helper, 'relay');
    if (called.outcome !== 'ready' || relayPort === null) throw new SvcError('connect_failed');
    const address = { host: helper.address.host, port: relayPort };
    return await this.#dial(talk, address, 'relay', called.seenAt, RELAY_DIAL_MS);
  }

  /**
   * Reaches a node by a TURN server: of ours where we have one, else of its own. They carry sealed packets.
   * @throws SvcError as `relay`
   */
  async turn(nodeKey: Uint8Array, helper: ObservedNode, signal?: AbortSignal): Promise<Connection> {
    const talk = { nodeKey, attempt: new Uint8Array(randomBytes(ATTEMPT_BYTES)), signal };
    if (!this.#deps.turn.isAvailable) {
      const { called } = await this.#ask(talk, helper, 'turn');
      if (called.outcome !== 'ready' || called.listensAt === null) throw new SvcError('connect_failed');
      return await this.#dial(talk, called.listensAt, 'turn', called.seenAt, RELAY_DIAL_MS);
    }
    const { seenAt } = (await this.#ask(talk, helper, 'witness')).called;
    if (!mayDialAt({ host: seenAt.host, port: FIRST_MAPPED_PORT }, helper.address)) throw misleading();
    return await dialOverTurn(this.#deps.turn, { peerHost: seenAt.host, token: talk.attempt }, async (carrier) => {
      const { called } = await this.#ask(talk, helper, 'turn', { listensAt: carrier.relayed });
      if (called.outcome !== 'ready') throw new SvcError('connect_failed');
      return await this.#dial(talk, carrier.local, 'turn', seenAt, RELAY_DIAL_MS, carrier.server);
    });
  }

  async #ask(
    { nodeKey, attempt, signal }: Talk,
    helper: ObservedNode,
    means: Means,
    more: { readonly listensAt?: Address; readonly isFar?: boolean } = {},
  ): Promise<CalledReply> {
    const { listensAt = null, isFar = false } = more;
    this.#deps.guard.calls(nodeKey);
    const { mapping } = this.#deps.lender;
    const request = encodeHelperRequest({ kind: 'introduce', to: nodeKey, attempt, means, mapping, listensAt, isFar });
    const reply = decodeHelperReply(await this.#deps.request(helper, request, signal));
    if (reply === null) throw new SvcError('protocol_error');
    const { called, relayPort } = reply;
    if (called === null) throw new NodeAbsent();
    if (called.outcome === 'refused') throw new SvcError('connect_failed');
    // The helper or the node that it introduces names these, and handshakes go there.
    if (called.listensAt !== null && !mayDialAt(called.listensAt, helper.address)) throw misleading();
    if (relayPort !== null && relayPort < FIRST_MAPPED_PORT) throw misleading();
    this.#deps.guard.witness(nodeKey, called.seenAt.host, helper.address);
    return { ...reply, called };
  }

  #dial(
    { nodeKey, signal }: Talk,
    address: Address,
    kind: PathKind,
    seenAt: Address,
    timeoutMs: number,
    remote: Address = address,
  ) {
    const how = { kind, source: seenAt.host, remote, timeoutMs, ...(signal === undefined ? {} : { signal }) };
    return this.#deps.dial(address, nodeKey, how);
  }

  async #dialPunched(talk: Talk, helper: ObservedNode, first: CalledReply): Promise<Connection> {
    const { listensAt, isSprayed, seenAt } = first.called;
    if (listensAt === null) throw new SvcError('protocol_error');
    if (isSprayed) return await this.#dialFromAll(talk, listensAt, seenAt);
    try {
      return await this.#dial(talk, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
    } catch (error) {
      if (talk.signal?.aborted === true) throw error;
    }
    // The packets may not have left the other side's networks.
    const again = await this.#ask(talk, helper, 'punch', { isFar: true });
    if (again.called.outcome !== 'ready' || again.called.listensAt === null) throw new SvcError('connect_failed');
    return await this.#dial(talk, again.called.listensAt, 'punched', again.called.seenAt, PUNCH_DIAL_MS);
  }

  /**
   * Both are behind one router, or one of a carrier: where it lets us in from inside, that is the longer way, and what
   * leads there by the network between us comes first.
   */
  async #dialHairpin(
    talk: Talk,
    { called: { listensAt, isSprayed, seenAt } }: CalledReply,
    isWanted: () => boolean,
  ): Promise<Connection> {
    if (listensAt === null) throw new SvcError('protocol_error');
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(HAIRPIN_DELAY_MS, resolve);
    try {
      await abortable(promise, talk.signal);
    } finally {
      timer.cancel();
    }
    if (!isWanted()) throw new SvcError('cancelled');
    if (isSprayed) return await this.#dialFromAll(talk, listensAt, seenAt);
    return await this.#dial(talk, listensAt, 'punched', seenAt, PUNCH_DIAL_MS);
  }

  async #dialFromAll({ nodeKey, signal }: Talk, listensAt: Address, seenAt: Address): Promise<Connection> {
    // Hundreds of handshakes go nowhere but to where helpers see the node.
    if (listensAt.host !== seenAt.host || !this.#deps.guard.maySpray(nodeKey, seenAt.host))
      throw new SvcError('connect_failed');
    const native = await this.#deps.pool.dial(listensAt, nodeKey, signal);
    return this.#adopt(native, true, seenAt);
  }

  #adopt(native: EngineConnection, outbound: boolean, seenAt: Address): Connection {
    return this.#deps.adopt({ native, outbound, kind: 'punched', source: seenAt.host });
  }

  /** The other side's outer port changes: it dials from all its sockets, and we open random ports of its host. */
  async #listen(talk: Talk, helper: ObservedNode, { called: { seenAt } }: CalledReply): Promise<Connection> {
    const { lender, guard, random } = this.#deps;
    const { nodeKey, signal } = talk;
    if (!guard.mayPunch(nodeKey, seenAt, helper.address)) throw new SvcError('connect_failed');
    // Where nothing stands before us, any port of theirs gets in.
    const isOpen = lender.mapping === 'open';
    if (!isOpen && !guard.maySpray(nodeKey, seenAt.host)) throw new SvcError('connect_failed');
    const targets = isOpen ? [seenAt] : randomTargets(seenAt.host, random);
    const { address, port } = await lender.lend({ expectedKey: nodeKey, targets, isFar: false, ownIpv6: null });
    try {
      const { called } = await this.#ask(talk, helper, 'listening', { listensAt: address });
      if (called.outcome !== 'dialling') throw new SvcError('connect_failed');
    } catch (error) {
      detach(port.close());
      throw error;
    }
    return this.#adopt(await port.connection(BIRTHDAY_TIMEOUT_MS, signal), false, seenAt);
  }
}

function misleading(): SvcError {
  return new SvcError('connect_failed', {
    message: 'A helper named an address that is not dialled: a private host, or a port below 1024.',
  });
}
