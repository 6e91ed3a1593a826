/** Creates invitations to this node's network, and joins the network of an invitation. */

import {
  type Address,
  formatAddress,
  formatContact,
  isEveryInterface,
  type NodeContact,
  parseContact,
} from '../../foundation/address.ts';
import { calledName } from '../../foundation/called-name.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { ExitState } from '../../foundation/domain/exit.ts';
import { type InvitationReach, MAX_INVITATION_CONTACTS, type MeetingState } from '../../foundation/domain/joining.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import { type Aid, nativePublicKey } from '../../foundation/identity/aid.ts';
import {
  formatInvitation,
  type Invitation,
  type JoinTarget,
  type OfferedAgent,
  otherContacts,
  type PinnedContact,
  parseJoinTarget,
} from '../../foundation/invitation.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../foundation/ip.ts';
import type { JoinedContacts } from '../../network/joined-contacts.ts';
import type { OwnAddress } from '../../network/reachability/own-addresses.ts';
import type { ContactView } from '../../network/records/bootstrap-nodes.ts';
import type { RecordDht } from '../../network/records/record-dht.ts';

/** Attempts per contact. A datagram may be lost. */
const ATTEMPTS = 3;
/** Longest wait for the way out of this network, milliseconds. */
const EXIT_TIMEOUT_MS = 10_000;
/** Other nodes that an invitation names if strangers cannot reach this node. */
const MAX_OTHER_NODES = 3;
/** Time limit for joining the network after a node has responded, in milliseconds. */
const READY_TIMEOUT_MS = 5_000;

interface JoiningOptions {
  readonly nodeAid: Aid;
  /** Name of the network; empty for the default network. */
  readonly network: string;
}

interface JoiningDependencies {
  readonly clock: Clock;
  readonly records: Pick<
    RecordDht,
    | 'join'
    | 'contacts'
    | 'forget'
    | 'listContact'
    | 'reachability'
    | 'onReachability'
    | 'identify'
    | 'peers'
    | 'address'
  >;
  readonly joined: JoinedContacts;
  /** The way out of this network, if UDP does not work. */
  readonly exit: {
    readonly state: () => ExitState;
    /** Settles when the state is not `connecting`. */
    readonly settled: () => Promise<void>;
    /** Also connects through these contacts. Returns a function that ends this. */
    readonly through: (contacts: readonly NodeContact[]) => () => void;
  };
  /** Why no node answered since that time. See `OutageDiagnosis.explainFailure`. */
  readonly why?: (since: number) => Promise<SvcError | null>;
  /** TCP ports at which nodes without UDP can use this node as a helper. */
  readonly tlsPorts: () => readonly number[];
  /** The known addresses of the node. */
  readonly facts: () => Pick<NodeFacts, 'known' | 'mapped'>;
  /** Receives the token of an invitation to an entry, after this node has joined. */
  readonly onEntry: (entry: Aid, token: string) => void;
  /** The name that this node gives itself; empty if it has none. */
  readonly name: () => string;
  /** The name of a local agent; undefined if it is not here. */
  readonly agentName: (aid: Aid) => string | undefined;
  /** The helpers of this node, with their record network addresses. */
  readonly helpers: () => readonly PinnedContact[];
}

interface OwnInvitation {
  readonly invitation: string;
  readonly network: string;
  /** Empty if the node has no name. */
  readonly name: string;
  readonly contacts: readonly NodeContact[];
  readonly reach: InvitationReach;
  readonly tlsPorts: readonly number[];
}

interface JoinedNetwork {
  readonly network: string;
  /** The node that responded first. */
  readonly by: NodeContact;
  readonly peers: number;
  readonly ready: boolean;
  /** The name that the inviting node gives itself. */
  readonly name?: string | undefined;
  /** An agent that the inviting user offers. */
  readonly agent?: OfferedAgent | undefined;
}

/** Explanation for a contact that was not reached. */
const ADVICE: Readonly<Record<Exclude<MeetingState, 'met'>, string>> = {
  untried: 'It was not tried.',
  unresolved:
    'Its name has no address. Check the name and the DNS of this machine, or use an invitation from "svc invite".',
  ipv6: 'It has no IPv4 address, which the record network requires. Use an invitation from "svc invite".',
  silent:
    'It does not respond. Check that svcd runs there, that its UDP port is open, and that it is in the same network.',
  other_key:
    'Another node responds there, without the key of the invitation. Ask for a new invitation from "svc invite".',
};

function named(network: string): string {
  return network === '' ? 'the default network' : `the network "${network}"`;
}

export class Joining {
  readonly #options: JoiningOptions;
  readonly #deps: JoiningDependencies;

  constructor(options: JoiningOptions, dependencies: JoiningDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /**
   * Creates the line with which another node joins this network.
   * @param more a token that permits one agent to hold public names here, and a local agent to offer as a contact
   * @throws SvcError `not_found`
   */
  async invite(more: { readonly token?: string; readonly agent?: Aid } = {}): Promise<OwnInvitation> {
    const { nodeAid: from, network } = this.#options;
    const { records, facts, tlsPorts } = this.#deps;
    const name = this.#deps.name();
    const agent = more.agent === undefined ? {} : { agent: this.#offered(more.agent) };
    const { inRoutingTables } = records.reachability();
    const { contacts, reach } = contactsForInvitation({
      ...facts(),
      nodeKey: this.#nodeKey,
      dht: records.address,
      isReached: inRoutingTables,
      others: await this.#others(),
    });
    return {
      invitation: formatInvitation({
        ...{ from, network, contacts, token: more.token },
        ...(name === '' ? {} : { name }),
        ...agent,
      }),
      network,
      name,
      contacts,
      reach,
      tlsPorts: tlsPorts(),
    };
  }

  #offered(aid: Aid): OfferedAgent {
    const name = this.#deps.agentName(aid);
    if (name === undefined) throw noSuchAgent(aid);
    return { aid, name: calledName(name) ?? '' };
  }

  get #nodeKey(): Uint8Array {
    const key = nativePublicKey(this.#options.nodeAid);
    if (key === null) throw new SvcError('internal');
    return key;
  }

  /** Nodes through which others can join: our helpers, or nodes of the routing table if there are none. */
  async #others(): Promise<readonly PinnedContact[]> {
    const { helpers, records } = this.#deps;
    if (helpers().length > 0) return helpers();
    const peers = records.peers().slice(0, MAX_OTHER_NODES);
    const known = await Promise.all(peers.map(async (peer) => ({ peer, at: await records.identify(peer) })));
    return known.flatMap(({ peer: { host, port }, at }) => (at === null ? [] : [{ host, port, nodeKey: at.nodeKey }]));
  }

  /**
   * Joins the network of an invitation or of a configured-style address. It takes effect immediately and survives
   * restarts. If no node responds, nothing changes.
   * @throws SvcError `invalid_request`, `self`, `wrong_state` for an invitation to another network, `connect_failed`
   */
  async join(text: string): Promise<JoinedNetwork> {
    const { records, joined } = this.#deps;
    const { contacts, invitation } = this.#targetOf(text);
    const end = this.#deps.exit.through(contacts);
    const by = await this.#firstResponding(contacts).finally(end);
    for (const contact of contacts) records.listContact(contact);
    joined.add(contacts, invitation);
    if (invitation?.token !== undefined) this.#deps.onEntry(invitation.from, invitation.token);
    const { peers, ready } = await this.#ready();
    const { name, agent } = invitation ?? {};
    return { network: this.#options.network, by, peers, ready, name, agent };
  }

  #targetOf(text: string): JoinTarget {
    const { contacts, invitation } = parseJoinTarget(text);
    if (invitation !== null) this.#checkInvitation(invitation);
    const others = otherContacts(contacts, this.#nodeKey);
    if (others.length > 0) return { contacts: others, invitation };
    throw new SvcError('self', { message: 'This is the address of this node. Run the command on another machine.' });
  }

  #checkInvitation({ from, network }: Invitation): void {
    if (from === this.#options.nodeAid)
      throw new SvcError('self', { message: 'This node created the invitation. Run "svc join" on another machine.' });
    if (network === this.#options.network) return;
    throw new SvcError('wrong_state', {
      message: `The invitation is for ${named(network)}, but this node is in ${named(this.#options.network)}. Set network = ${JSON.stringify(network)} in config.toml, restart svcd, and run "svc join" again.`,
      details: { network, own_network: this.#options.network },
    });
  }

  /** The first contact that responds. */
  async #firstResponding(contacts: readonly NodeContact[]): Promise<NodeContact> {
    const since = this.#deps.clock.now();
    const states = new Map<string, MeetingState>();
    const attempts = contacts.map(async (contact) => {
      const state = await this.#joinThrough(contact);
      states.set(formatContact(contact), state);
      if (state === 'met') return contact;
      throw new SvcError('connect_failed');
    });
    try {
      return await Promise.any(attempts);
    } catch (cause) {
      const attempted = [...states].map(([contact, state]) => ({ contact, state }));
      // At the address of a local network, another machine may answer from here.
      const wide = contacts.filter(isWide);
      const telling = (wide.length > 0 ? wide : contacts).map((contact) => states.get(formatContact(contact)));
      const [worst = 'silent'] = (['other_key', 'silent', 'unresolved', 'ipv6'] as const).filter((one) =>
        telling.includes(one),
      );
      const [one] = attempted;
      const what =
        attempted.length === 1 ? `Cannot reach ${one?.contact}.` : `Cannot reach any of the ${attempted.length} nodes.`;
      const trouble = worst === 'silent' ? await this.#deps.why?.(since) : null;
      throw new SvcError('connect_failed', {
        message: `${what} ${trouble?.message ?? ADVICE[worst]}`,
        details: { contacts: attempted },
        cause,
      });
    }
  }

  async #joinThrough(contact: NodeContact): Promise<MeetingState> {
    let state: MeetingState = 'untried';
    for (let tries = 0; tries < ATTEMPTS && (state === 'untried' || state === 'silent'); tries++)
      state = await this.#deps.records.join(contact);
    return state === 'silent' || state === 'unresolved' ? await this.#joinOverTls(contact, state) : state;
  }

  /** Tries again when this node has connected over TLS. Behind a proxy, the names of contacts need not resolve here. */
  async #joinOverTls(contact: NodeContact, before: MeetingState): Promise<MeetingState> {
    const { clock, records, exit } = this.#deps;
    const wasConnecting = exit.state() === 'connecting';
    if (wasConnecting) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(EXIT_TIMEOUT_MS, resolve);
      await Promise.race([promise, exit.settled()]);
      timer.cancel();
    }
    const isOverTls = exit.state() === 'tls';
    if (!isOverTls && !(wasConnecting && exit.state() === 'udp')) return before;
    const state = await records.join(contact);
    return state === 'unresolved' && isOverTls && (await this.#ready()).ready ? 'met' : state;
  }

  /** Waits until the network is joined or the time limit has passed. */
  async #ready(): Promise<{ readonly peers: number; readonly ready: boolean }> {
    const { records, clock } = this.#deps;
    if (!records.reachability().ready)
      await new Promise<void>((resolve) => {
        const stop = records.onReachability(({ ready }) => (ready ? end() : undefined));
        const timer = clock.after(READY_TIMEOUT_MS, () => end());
        const end = (): void => {
          stop();
          timer.cancel();
          resolve();
        };
      });
    return records.reachability();
  }

  /** The bootstrap nodes, each with whether it was joined or is configured. */
  contacts(): readonly (ContactView & { readonly isJoined: boolean; readonly name: string | undefined })[] {
    const { records, joined } = this.#deps;
    return records
      .contacts()
      .map((view) => ({ ...view, isJoined: joined.has(view.contact), name: joined.nameOf(view.contact) }));
  }

  /**
   * Undoes a `join`.
   * @throws SvcError `not_found`; `wrong_state` for a configured node
   */
  forget(text: string): void {
    const contact = parseContact(text.trim());
    const { records, joined } = this.#deps;
    if (contact !== null && joined.has(contact)) {
      joined.remove(contact);
      records.forget(contact);
      return;
    }
    const isConfigured = records
      .contacts()
      .some((view) => contact !== null && formatContact(view.contact) === formatContact(contact));
    if (isConfigured)
      throw new SvcError('wrong_state', {
        message: 'This node is in the configuration. Remove it from bootstrap, and restart svcd.',
      });
    throw new SvcError('not_found', { message: 'This node is not a contact. "svc contacts" lists the contacts.' });
  }
}

// The addresses at which other nodes can join through this node. Pure.

/** LAN addresses in an invitation. A machine may have one for each virtual machine. */
const MAX_LAN = 2;

export interface NodeFacts {
  readonly nodeKey: Uint8Array;
  /** Listen address of the record network. The host is `0.0.0.0` for all interfaces. */
  readonly dht: Address;
  /** Known addresses for QUIC, on the same hosts. */
  readonly known: readonly OwnAddress[];
  /** Router ports mapped to the record network's port. */
  readonly mapped: readonly Address[];
  /** Whether strangers have reached the node. */
  readonly isReached: boolean;
  /** Other nodes of the network, with their record network addresses. */
  readonly others: readonly PinnedContact[];
}

/** An own IPv6 address: nodes with IPv6 only join through it over TLS. */
function ownIpv6({ dht, known, isReached }: NodeFacts): Address[] {
  const hosts = known.filter(({ source }) => source === 'interface').map(({ address }) => address.host);
  const host = hosts.find((one) => one.includes(':') && ipScope(one) === IP_SCOPE.public);
  return host === undefined || !isReached || !isEveryInterface(dht.host) ? [] : [{ host, port: dht.port }];
}

/** The record network uses IPv4 addresses, or names that resolve to them. */
function isUsable({ host }: Address): boolean {
  return canonicalIp(host) === null || !host.includes(':');
}

function isWide({ host }: Address): boolean {
  return canonicalIp(host) === null || ipScope(host) === IP_SCOPE.public;
}

/** Its own addresses, best first. */
function ownAddresses({ dht, known, mapped }: NodeFacts): Address[] {
  const hosts = known
    .filter(({ source, verifiedBy }) => source !== 'mapped' && (source !== 'observed' || verifiedBy !== null))
    .map(({ address }) => address.host);
  const all = isEveryInterface(dht.host) ? hosts.map((host) => ({ host, port: dht.port })) : [dht];
  const places = new Map([...mapped, ...all].filter(isUsable).map((place) => [formatAddress(place), place]));
  const [wide, near] = [[...places.values()].filter(isWide), [...places.values()].filter((place) => !isWide(place))];
  // Loopback addresses are used only if there are no others.
  const lan = near.filter(({ host }) => ipScope(host) > IP_SCOPE.loopback);
  return [...wide, ...(wide.length + lan.length > 0 ? lan.slice(0, MAX_LAN) : near)];
}

/** The nodes that an invitation names, and the networks that reach them. */
export function contactsForInvitation(facts: NodeFacts): {
  readonly contacts: readonly PinnedContact[];
  readonly reach: InvitationReach;
} {
  const own = ownAddresses(facts).map((place): PinnedContact => ({ ...place, nodeKey: facts.nodeKey }));
  const wide = own.filter(isWide);
  const others = facts.isReached && wide.length > 0 ? [] : facts.others;
  const overTls = ownIpv6(facts).map((place): PinnedContact => ({ ...place, nodeKey: facts.nodeKey }));
  const near = own.filter((place) => !isWide(place));
  const contacts = [...wide, ...overTls, ...others, ...near].slice(0, MAX_INVITATION_CONTACTS);
  const reach = (): InvitationReach => {
    if (facts.isReached && wide.length > 0) return 'anywhere';
    if (others.some(isWide)) return 'helped';
    if (wide.length > 0) return 'unproven';
    return contacts.some(({ host }) => ipScope(host) > IP_SCOPE.loopback) ? 'lan' : 'machine';
  };
  return { contacts, reach: reach() };
}
