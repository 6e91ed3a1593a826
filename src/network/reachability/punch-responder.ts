/** What a node does when a helper of its own introduces another one that wants to reach it. */
import type { Address } from '../../foundation/address.ts';
import { detach } from '../../foundation/detached.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import { IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { Log } from '../../foundation/log.ts';
import type { Way } from '../transport/path.ts';
import type { EngineConnection } from '../transport/quic/engine.ts';
import { FIRST_MAPPED_PORT } from '../transport/udp-socket.ts';
import type { ClientPool } from './client-pool.ts';
import type { ObservedNode } from './helper.ts';
import type { LentPort } from './lent-port.ts';
import { hasStablePort } from './nat.ts';
import { randomTargets } from './opening.ts';
import type { PortLender } from './port-lender.ts';
import type { PunchGuard } from './punch-guard.ts';
import { type CalledOutcome, type Introduction, type IntroductionAnswer } from './signals.ts';
import type { TurnAccess, TurnCarrier } from './turn/turn-servers.ts';
import type { RendezvousRequest } from './turn-rendezvous.ts';

/** A connection that came by an introduction. */
export interface Introduced {
  readonly native: EngineConnection;
  /** True where we dialled, so that we say hello. */
  readonly outbound: boolean;
  readonly kind: PathKind;
  /** The other node's IP address as a helper sees it; left out where none does. */
  readonly source?: string;
  /** Who it is that packets go to, where the socket shows another one. */
  readonly remote?: Address;
}

/** The way of a connection that came by an introduction. */
export function wayOf({ kind, source, remote }: Introduced): Way {
  return { kind, ...(source === undefined ? {} : { source }), ...(remote === undefined ? {} : { remote }) };
}

/** A caller that is met at a TURN server. */
interface TurnMeeting {
  readonly caller: Uint8Array;
  readonly attempt: Uint8Array;
  /** Where its packets come from. */
  readonly host: string;
  /** Its own address at a server; null for one of ours. */
  readonly listensAt: Address | null;
  /** As in `Introduced`. */
  readonly source?: string;
}

interface CalledDependencies {
  readonly log: Log;
  readonly lender: Pick<PortLender, 'mapping' | 'lend' | 'lendAtRelay' | 'lendTowardsRelay' | 'lendLocally'>;
  /** Our own TURN servers. */
  readonly turn: TurnAccess;
  readonly pool: Pick<ClientPool, 'waitMs' | 'prepare' | 'dial'>;
  readonly guard: PunchGuard;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  /** Our public IPv6 address from which we write to another one; null for none. */
  readonly ownIpv6: (to: Address) => Promise<string | null>;
  /** Whether a node is one of the helpers that we have chosen: nobody else introduces anybody. */
  readonly isHelper: (nodeKey: Uint8Array) => boolean;
  /** Whether a node may call this one. */
  readonly mayCall: (nodeKey: Uint8Array) => boolean;
  /** False where no third node may carry our packets. */
  readonly mayRelay: () => boolean;
  /** Takes the connection, whoever dialled it. */
  readonly take: (connection: Introduced) => void;
  /** Dials one address from the socket that all ordinary dials use. */
  readonly dial: (address: Address, nodeKey: Uint8Array, source: string) => Promise<void>;
}

export class PunchResponder {
  readonly #deps: CalledDependencies;

  constructor(dependencies: CalledDependencies) {
    this.#deps = dependencies;
  }

  /** Answers an introduction; never rejects. */
  async answer(introduction: Introduction, helper: ObservedNode): Promise<IntroductionAnswer> {
    const { isHelper, mayCall, mayRelay, guard, log } = this.#deps;
    const { caller, seenAt } = introduction;
    if (!isHelper(helper.nodeKey) || !mayCall(caller)) return this.#say('refused');
    if ((introduction.means === 'relay' || introduction.means === 'turn') && !mayRelay()) return this.#say('refused');
    guard.witness(caller, seenAt.host, helper.address);
    try {
      return await this.#meet(introduction, helper.address);
    } catch (error) {
      log.debug({ error }, 'an introduction led to nothing');
      return this.#say('relay');
    }
  }

  /**
   * Goes to meet a caller that asked for it over the record network, where no helper says where it is.
   * @param ownHost where others see us: nobody there has seen hosts of our own networks
   * @returns where the caller has to come to; null where that is at its own address
   * @throws SvcError `access_denied`, `rate_limited`, `connect_failed`, `timeout`
   */
  async meet({ caller, attempt, host, listensAt }: RendezvousRequest, ownHost: string): Promise<Address | null> {
    const { guard, mayCall, mayRelay } = this.#deps;
    if (!mayCall(caller) || !mayRelay()) throw new SvcError('access_denied');
    const target = listensAt ?? { host, port: FIRST_MAPPED_PORT };
    if (!guard.mayPunch(caller, target, { host: ownHost, port: 0 })) throw new SvcError('rate_limited');
    return await this.#goToTurn({ caller, attempt, host, listensAt });
  }

  #say(outcome: CalledOutcome, listensAt: Address | null = null, isSprayed = false): IntroductionAnswer {
    return { outcome, mapping: this.#deps.lender.mapping, listensAt, isSprayed };
  }

  async #meet(introduction: Introduction, helper: Address): Promise<IntroductionAnswer> {
    switch (introduction.means) {
      case 'witness':
        return this.#say('noted');
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

  async #listen({ caller, mapping, seenAt, isFar }: Introduction, helper: Address): Promise<IntroductionAnswer> {
    const { lender, guard, random } = this.#deps;
    if (!hasStablePort(lender.mapping)) {
      if (!hasStablePort(mapping)) return this.#say('relay');
      if (mapping !== 'open') this.#deps.pool.prepare();
      return this.#say('listen');
    }
    if (!guard.mayPunch(caller, seenAt, helper)) return this.#say('refused');
    const isSprayed = !hasStablePort(mapping);
    if (isSprayed && !guard.maySpray(caller, seenAt.host)) return this.#say('relay');
    const targets = isSprayed ? randomTargets(seenAt.host, random) : [seenAt];
    const { address, port } = await lender.lend({ expectedKey: caller, targets, isFar, ownIpv6: null });
    this.#await(port, 'punched', seenAt.host);
    return this.#say('ready', address, isSprayed);
  }

  /**
   * Helpers are met over IPv4, so where the caller dials from over IPv6 is its own word. A few packets go there, and
   * never farther than a few hops, which is enough for our own firewalls: hosts of others see none of them.
   */
  async #listenOverIpv6({ caller, seenAt, listensAt }: Introduction, helper: Address): Promise<IntroductionAnswer> {
    const { lender, guard, ownIpv6 } = this.#deps;
    if (listensAt === null || !guard.mayPunch(caller, listensAt, helper, seenAt.host)) return this.#say('refused');
    const own = await ownIpv6(listensAt);
    if (own === null) return this.#say('relay');
    const options = { expectedKey: caller, targets: [listensAt], isFar: false, ownIpv6: own };
    const { address, port } = await lender.lend(options);
    this.#await(port, 'punched', seenAt.host);
    return this.#say('ready', address);
  }

  /** The caller listens: where the helper sees it, as nobody may have us dial others. */
  #dial({ caller, mapping, seenAt, listensAt }: Introduction, helper: Address): IntroductionAnswer {
    const { guard, lender } = this.#deps;
    if (listensAt === null || listensAt.host !== seenAt.host) return this.#say('refused');
    if (!guard.mayPunch(caller, listensAt, helper)) return this.#say('refused');
    // Nothing stands before a caller that is open: it is dialled as any public node, from whatever outer port.
    if (hasStablePort(lender.mapping) || mapping === 'open') {
      detach(this.#attempt(() => this.#deps.dial(listensAt, caller, seenAt.host)));
      return this.#say('dialling');
    }
    if (this.#deps.pool.waitMs > 0 || !guard.maySpray(caller, seenAt.host)) return this.#say('relay');
    detach(
      this.#attempt(async () => {
        const native = await this.#deps.pool.dial(listensAt, caller);
        this.#deps.take({ native, outbound: true, kind: 'punched', source: seenAt.host });
      }),
    );
    return this.#say('dialling');
  }

  async #joinRelay({ caller, seenAt, relay }: Introduction, helper: Address): Promise<IntroductionAnswer> {
    if (relay === null) throw new SvcError('protocol_error');
    const address = { host: helper.host, port: relay.port };
    // To our own helper, but at a port that others caused it to name.
    if (ipScope(address.host) === IP_SCOPE.none || !this.#deps.guard.mayPunch(caller, address, helper))
      return this.#say('refused');
    const port = await this.#deps.lender.lendTowardsRelay(address, relay.token, caller);
    this.#await(port, 'relay', seenAt.host);
    return this.#say('ready');
  }

  /** At the caller's address at a TURN server, or else at one of ours. */
  async #meetAtTurn(
    { caller, attempt, seenAt, listensAt }: Introduction,
    helper: Address,
  ): Promise<IntroductionAnswer> {
    const { guard, turn } = this.#deps;
    if (!guard.mayPunch(caller, listensAt ?? seenAt, helper, seenAt.host)) return this.#say('refused');
    if (listensAt === null && !turn.isAvailable) return this.#say('relay');
    const { host } = seenAt;
    return this.#say('ready', await this.#goToTurn({ caller, attempt, host, listensAt, source: host }));
  }

  /** @returns our address there; null where it is the caller's */
  async #goToTurn({ caller, attempt, host, listensAt, source }: TurnMeeting): Promise<Address | null> {
    const { lender, turn } = this.#deps;
    if (listensAt !== null) {
      // A few small datagrams to a host that the caller names: no more than it sent itself to have us do so.
      this.#await(await lender.lendAtRelay(listensAt, attempt, caller), 'turn', source);
      return null;
    }
    if (!turn.isAvailable) throw new SvcError('connect_failed');
    const port = await lender.lendLocally(caller);
    try {
      const carrier = await turn.open({ peerHost: host, enginePort: port.port, token: null });
      detach(port.ended.then(() => turn.close(carrier)));
      this.#await(port, 'turn', source, carrier);
      return carrier.relayed;
    } catch (error) {
      detach(port.close());
      throw error;
    }
  }

  #await(port: LentPort, kind: PathKind, source: string | undefined, carrier?: TurnCarrier): void {
    detach(
      this.#attempt(async () => {
        const native = await port.connection();
        if (carrier !== undefined) detach(carrier.lost.then(() => native.abort()));
        const from = source === undefined ? {} : { source };
        const to = carrier === undefined ? {} : { remote: carrier.server };
        this.#deps.take({ native, outbound: false, kind, ...from, ...to });
      }),
    );
  }

  /** What comes to nothing is the caller's to try again. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.log.debug({ error }, 'an introduced node did not come');
    }
  }
}
