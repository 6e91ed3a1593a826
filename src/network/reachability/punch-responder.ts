/** Responds to the introductions of this node's helpers. */

import type { Address } from '../../foundation/address.ts';
import { detach } from '../../foundation/detached.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Log } from '../../foundation/log.ts';
import type { ClientPool, EngineConnection, LentPort } from '../transport/engine-connection.ts';
import type { Way } from '../transport/path.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import type { ObservedNode } from './helper.ts';
import { hasStablePort } from './nat.ts';
import { randomTargets } from './opening.ts';
import type { PortLender } from './port-lender.ts';
import type { PunchGuard } from './punch-guard.ts';
import { type CalledOutcome, type Introduction, type IntroductionAnswer } from './signals.ts';
import type { TurnCarrier, TurnServers } from './turn/turn-servers.ts';
import type { RendezvousRequest } from './turn-rendezvous.ts';

/** A connection that an introduction led to. */
export interface Introduced {
  readonly native: EngineConnection;
  /** True if this node dialed and therefore sends the hello. */
  readonly outbound: boolean;
  readonly kind: PathKind;
  /** The peer's IP address as a helper sees it; omitted if there is no helper. */
  readonly source?: string;
  /** The address that packets are sent to, if the socket shows a different one. */
  readonly remote?: Address;
}

/** The path of an introduced connection. */
export function introducedWay({ kind, source, remote }: Introduced): Way {
  return { kind, ...(source === undefined ? {} : { source }), ...(remote === undefined ? {} : { remote }) };
}

/** A caller to meet at a TURN server. */
interface TurnMeeting {
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  /** The source of its packets. */
  readonly host: string;
  /** The caller's address at a TURN server; null to use a server of this node. */
  readonly listensAt: Address | null;
  /** As in `Introduced`. */
  readonly source?: string;
}

interface PunchResponderDependencies {
  readonly log: Log;
  readonly lender: Pick<PortLender, 'mapping' | 'lend' | 'lendAtRelay' | 'lendToHelperRelay' | 'lendLocally'>;
  /** This node's TURN servers. */
  readonly turn: TurnServers;
  readonly pool: ClientPool;
  readonly guard: PunchGuard;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  /** The public IPv6 address that this node uses for a destination; null if there is none. */
  readonly ownIpv6: (to: Address) => Promise<string | null>;
  /** Whether a node is a chosen helper of this node. Introductions of other nodes are refused. */
  readonly isHelper: (nodeKey: Uint8Array) => boolean;
  /** Whether a node may call this node. */
  readonly mayCall: (nodeKey: Uint8Array) => boolean;
  /** False if third nodes must not relay packets of this node. */
  readonly mayRelay: () => boolean;
  /** Accepts an introduced connection. */
  readonly accept: (connection: Introduced) => void;
  /** Dials an address from the socket that all ordinary dials use. */
  readonly dial: (address: Address, nodeKey: Uint8Array, source: string) => Promise<void>;
}

export class PunchResponder {
  readonly #deps: PunchResponderDependencies;

  constructor(dependencies: PunchResponderDependencies) {
    this.#deps = dependencies;
  }

  /** Answers an introduction; never rejects. */
  async answer(introduction: Introduction, helper: ObservedNode): Promise<IntroductionAnswer> {
    const { isHelper, mayCall, mayRelay, guard, log } = this.#deps;
    const { caller, seenAt } = introduction;
    if (!isHelper(helper.nodeKey) || !mayCall(caller)) return this.#reply('refused');
    if ((introduction.means === 'relay' || introduction.means === 'turn') && !mayRelay()) return this.#reply('refused');
    guard.addWitness(caller, seenAt.host, helper.address);
    try {
      return await this.#meet(introduction, helper.address);
    } catch (error) {
      log.debug({ error }, 'an introduction failed');
      return this.#reply('relay');
    }
  }

  /**
   * Meets a caller that sent a request over the record network, without a helper that reports its address.
   * @param ownHost this node's public host: a caller on the Internet must not name private hosts
   * @returns the address that the caller must dial; null if they meet at the caller's address
   * @throws SvcError `access_denied`, `rate_limited`, `connect_failed`, `timeout`
   */
  async meet({ caller, attempt, host, listensAt }: RendezvousRequest, ownHost: string): Promise<Address | null> {
    const { guard, mayCall, mayRelay } = this.#deps;
    if (!mayCall(caller) || !mayRelay()) throw new SvcError('access_denied');
    const target = listensAt ?? { host, port: FIRST_MAPPED_PORT };
    if (!guard.mayPunch(caller, target, { host: ownHost, port: 0 })) throw new SvcError('rate_limited');
    return await this.#meetThroughTurn({ caller, attempt, host, listensAt });
  }

  #reply(outcome: CalledOutcome, listensAt: Address | null = null, isSprayed = false): IntroductionAnswer {
    return { outcome, mapping: this.#deps.lender.mapping, listensAt, isSprayed };
  }

  async #meet(introduction: Introduction, helper: Address): Promise<IntroductionAnswer> {
    switch (introduction.means) {
      case 'witness':
        return this.#reply('noted');
      case 'punch':
        return await this.#listen(introduction, helper);
      case 'ipv6':
        return await this.#listenOverIpv6(introduction, helper);
      case 'listening':
        return this.#dial(introduction, helper);
      case 'relay':
        return await this.#joinRelay(introduction, helper);
      case 'turn':
        return await this.#meetAtTurn(introduction, helper);
    }
  }

  async #listen(
    { caller, mapping, seenAt, needsFullHops }: Introduction,
    helper: Address,
  ): Promise<IntroductionAnswer> {
    const { lender, guard, random } = this.#deps;
    if (!hasStablePort(lender.mapping)) {
      if (!hasStablePort(mapping)) return this.#reply('relay');
      if (mapping !== 'open') this.#deps.pool.prepare();
      return this.#reply('listen');
    }
    if (!guard.mayPunch(caller, seenAt, helper)) return this.#reply('refused');
    const isSprayed = !hasStablePort(mapping);
    if (isSprayed && !guard.maySpray(caller, seenAt.host)) return this.#reply('relay');
    const targets = isSprayed ? randomTargets(seenAt.host, random) : [seenAt];
    const { address, port } = await lender.lend({ expectedKey: caller, targets, needsFullHops, ownIpv6: null });
    this.#acceptWhenConnected(port, 'punched', seenAt.host);
    return this.#reply('ready', address, isSprayed);
  }

  /**
   * Helpers use IPv4, so the caller's IPv6 address is unverified. Only a few packets are sent there, with a low hop
   * limit: enough to open this node's firewalls, but too low to reach other hosts.
   */
  async #listenOverIpv6({ caller, seenAt, listensAt }: Introduction, helper: Address): Promise<IntroductionAnswer> {
    const { lender, guard, ownIpv6 } = this.#deps;
    if (listensAt === null || !guard.mayPunch(caller, listensAt, helper, seenAt.host)) return this.#reply('refused');
    const own = await ownIpv6(listensAt);
    if (own === null) return this.#reply('relay');
    const options = { expectedKey: caller, targets: [listensAt], needsFullHops: false, ownIpv6: own };
    const { address, port } = await lender.lend(options);
    this.#acceptWhenConnected(port, 'punched', seenAt.host);
    return this.#reply('ready', address);
  }

  /**
   * The caller listens. Dials only the host where the helper sees it, so that callers cannot direct packets to third
   * hosts.
   */
  #dial({ caller, mapping, seenAt, listensAt }: Introduction, helper: Address): IntroductionAnswer {
    const { guard, lender } = this.#deps;
    if (listensAt === null || listensAt.host !== seenAt.host) return this.#reply('refused');
    if (!guard.mayPunch(caller, listensAt, helper)) return this.#reply('refused');
    // A caller without a NAT can be dialed from any port.
    if (hasStablePort(lender.mapping) || mapping === 'open') {
      detach(this.#logFailure(() => this.#deps.dial(listensAt, caller, seenAt.host)));
      return this.#reply('dialling');
    }
    if (this.#deps.pool.waitMs > 0 || !guard.maySpray(caller, seenAt.host)) return this.#reply('relay');
    detach(
      this.#logFailure(async () => {
        const native = await this.#deps.pool.dial(listensAt, caller);
        this.#deps.accept({ native, outbound: true, kind: 'punched', source: seenAt.host });
      }),
    );
    return this.#reply('dialling');
  }

  async #joinRelay({ caller, seenAt, relay }: Introduction, helper: Address): Promise<IntroductionAnswer> {
    if (relay === null) throw new SvcError('protocol_error');
    const address = { host: helper.host, port: relay.port };
    // The host is this node's helper, but the helper's port was requested by others.
    if (ipScope(address.host) === IP_SCOPE.none || !this.#deps.guard.mayPunch(caller, address, helper))
      return this.#reply('refused');
    const port = await this.#deps.lender.lendToHelperRelay(address, relay.token, caller);
    this.#acceptWhenConnected(port, 'relay', seenAt.host);
    return this.#reply('ready');
  }

  /** Uses the caller's address at a TURN server, or else a server of this node. */
  async #meetAtTurn(
    { caller, attempt, seenAt, listensAt }: Introduction,
    helper: Address,
  ): Promise<IntroductionAnswer> {
    const { guard, turn } = this.#deps;
    if (!guard.mayPunch(caller, listensAt ?? seenAt, helper, seenAt.host)) return this.#reply('refused');
    if (listensAt === null && !turn.isAvailable) return this.#reply('relay');
    const { host } = seenAt;
    return this.#reply('ready', await this.#meetThroughTurn({ caller, attempt, host, listensAt, source: host }));
  }

  /** @returns the address at this node's server; null if the caller's is used */
  async #meetThroughTurn({ caller, attempt, host, listensAt, source }: TurnMeeting): Promise<Address | null> {
    const { lender, turn } = this.#deps;
    if (listensAt !== null) {
      // Sends a few small datagrams to a host that the caller named: at most as many as the caller had to send.
      this.#acceptWhenConnected(await lender.lendAtRelay(listensAt, attempt, caller), 'turn', source);
      return null;
    }
    if (!turn.isAvailable) throw new SvcError('connect_failed');
    const port = await lender.lendLocally(caller);
    try {
      const carrier = await turn.open({ peerHost: host, enginePort: port.port, token: null });
      detach(port.ended.then(() => turn.close(carrier)));
      this.#acceptWhenConnected(port, 'turn', source, carrier);
      return carrier.relayed;
    } catch (error) {
      detach(port.close());
      throw error;
    }
  }

  #acceptWhenConnected(port: LentPort, kind: PathKind, source: string | undefined, carrier?: TurnCarrier): void {
    detach(
      this.#logFailure(async () => {
        const native = await port.connection();
        if (carrier !== undefined) detach(carrier.lost.then(() => native.abort()));
        const from = source === undefined ? {} : { source };
        const to = carrier === undefined ? {} : { remote: carrier.server };
        this.#deps.accept({ native, outbound: false, kind, ...from, ...to });
      }),
    );
  }

  /** A failure is logged only: the caller retries. */
  async #logFailure(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.log.debug({ error }, 'an introduced node did not connect');
    }
  }
}
