/**
 * Nodes that are contacted while the routing table is empty: the bootstrap list, nodes found by mDNS, and nodes known
 * before.
 */
import { lookup } from 'node:dns/promises';
import { isIPv4, isIPv6 } from 'node:net';
import { type Address, formatAddress, formatContact, type NodeContact } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { MeetingState, ProofState } from '../../foundation/domain/joining.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { nodeScope } from './node-address.ts';

/** Found and remembered nodes in addition to the bootstrap list, and nodes that are saved for the next start. */
export const MAX_FOUND = 50;
/** Remembered nodes that left the routing table. */
const MAX_LEFT = 32;
/** Nodes outside of the list that are contacted again at one time: the last four to leave, and four others in turn. */
export const MET_AGAIN = 8;
/** Addresses of one name that are contacted. */
export const MAX_ADDRESSES_PER_NAME = 8;
/** Time until a name is resolved again. */
const NAME_TTL_MS = 300_000;

export interface ContactView {
  readonly contact: NodeContact;
  readonly state: MeetingState;
  /** It has answered since the start of this node. */
  readonly hasAnswered: boolean;
  /** The known addresses of its name. */
  readonly addresses: readonly Address[];
}

/** How nodes are contacted. */
export interface Meeting {
  /** False without an answer. */
  greet(address: Address): Promise<boolean>;
  /** As `greet`, and lets the node prove a key. */
  prove(address: Address, nodeKey: Uint8Array): Promise<ProofState>;
}

/** The IP addresses of a host name, or IPv4 addresses of the host with an IPv6 address. */
type ResolveName = (name: string) => Promise<readonly string[]>;

async function systemResolver(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}

/** One entry of the list. */
class Listed {
  readonly contact: NodeContact;
  state: MeetingState = 'untried';
  hasAnswered = false;
  /** IPv4 addresses. */
  hosts: readonly string[] = [];
  /** When its name was last resolved, on the clock. */
  #resolvedAt = Number.NEGATIVE_INFINITY;
  /** Addresses that have proven the required key. */
  readonly #proven = new Set<string>();

  constructor(contact: NodeContact) {
    this.contact = contact;
    if (isIPv4(contact.host)) this.hosts = [contact.host];
  }

  get all(): Address[] {
    return this.hosts.map((host) => ({ host, port: this.contact.port }));
  }

  /** Addresses that can be contacted without a new proof. */
  get addresses(): Address[] {
    const { all } = this;
    return this.contact.nodeKey === undefined ? all : all.filter((address) => this.#proven.has(formatAddress(address)));
  }

  /**
   * Resolves the name if that was not done, is long ago, or found nothing. Without a result, earlier addresses stay.
   */
  async #resolve(clock: Clock, resolveName: ResolveName): Promise<void> {
    const { host } = this.contact;
    const isFresh = this.state === 'met' && clock.monotonic() - this.#resolvedAt < NAME_TTL_MS;
    if (isIPv4(host) || isFresh) return;
    const named = await resolveName(host).catch(() => []);
    const found = isIPv6(host) ? [host, ...named] : named;
    const hosts = [...new Set(found.filter((one) => isIPv4(one)))].slice(0, MAX_ADDRESSES_PER_NAME);
    if (hosts.length > 0) this.hosts = hosts;
    else if (this.hosts.length === 0) this.state = found.length > 0 ? 'ipv6' : 'unresolved';
    this.#resolvedAt = clock.monotonic();
  }

  /** Contacts the entry. True as soon as a node has answered, and proven the key if one is required. */
  async meet(meeting: Meeting, clock: Clock, resolveName: ResolveName): Promise<boolean> {
    await this.#resolve(clock, resolveName);
    if (this.hosts.length === 0) return false;
    const states = await Promise.all(this.all.map((address) => this.#turnTo(address, meeting)));
    const [best = 'silent'] = (['met', 'other_key'] as const).filter((state) => states.includes(state));
    this.state = best;
    this.hasAnswered ||= best === 'met';
    return best === 'met';
  }

  async #turnTo(address: Address, meeting: Meeting): Promise<MeetingState> {
    const { nodeKey } = this.contact;
    if (nodeKey === undefined) return (await meeting.greet(address)) ? 'met' : 'silent';
    const state = await meeting.prove(address, nodeKey);
    if (state === 'met') this.#proven.add(formatAddress(address));
    else if (state === 'other_key') this.#proven.delete(formatAddress(address));
    return state;
  }
}

/** A found or remembered node. */
interface Found extends Address {
  /** Whether it did not answer the last time. */
  isSilent: boolean;
}

function byAddress(nodes: readonly Address[]): Map<string, Address> {
  return new Map(nodes.map((address) => [formatAddress(address), address]));
}

export class BootstrapNodes {
  readonly #clock: Clock;
  readonly #resolveName: ResolveName;
  /** By their texts, in the order of the list. */
  readonly #listed: Map<string, Listed>;
  readonly #found = new LruCache<string, Found>({ maxEntries: MAX_FOUND });
  readonly #left = new LruCache<string, Address>({ maxEntries: MAX_LEFT });
  #turn = 0;

  /** @param resolveName default: the resolver of the system */
  constructor(bootstrap: readonly NodeContact[], clock: Clock, resolveName: ResolveName = systemResolver) {
    this.#clock = clock;
    this.#resolveName = resolveName;
    this.#listed = new Map(bootstrap.map((contact) => [formatContact(contact), new Listed(contact)]));
  }

  /** Adds a found or remembered node. False if the address is known or invalid. */
  add(address: Address): boolean {
    if (nodeScope(address.host) === IP_SCOPE.none || address.port < 1 || address.port > 0xffff) return false;
    const key = formatAddress(address);
    if (this.#found.has(key)) return false;
    this.#found.set(key, { host: address.host, port: address.port, isSilent: false });
    return true;
  }

  /** Contacts a node that may be missing in the list. If it answers, it is added. */
  async join(contact: NodeContact, meeting: Meeting): Promise<MeetingState> {
    const key = formatContact(contact);
    const listed = this.#listed.get(key) ?? new Listed(contact);
    if (await listed.meet(meeting, this.#clock, this.#resolveName)) this.list(contact, listed);
    return listed.state;
  }

  /** Adds a contact to the list if it is missing. */
  list(contact: NodeContact, listed: Listed = new Listed(contact)): void {
    const key = formatContact(contact);
    if (!this.#listed.has(key)) this.#listed.set(key, listed);
  }

  /** Removes a contact from the list. */
  forget(contact: NodeContact): void {
    this.#listed.delete(formatContact(contact));
  }

  /**
   * The list, with the last result of each entry. `meetAgain` does not contact nodes of the routing table, which may
   * have lost an answer once. They count as `met`.
   */
  contacts(isInTable: (address: Address) => boolean = () => false): ContactView[] {
    return [...this.#listed.values()].map(({ contact, state, hasAnswered, all, addresses }) => {
      const isMet = state === 'met' || (state === 'silent' && addresses.some(isInTable));
      return { contact, state: isMet ? 'met' : state, hasAnswered: hasAnswered || isMet, addresses: all };
    });
  }

  /** Contacts all entries independently, so that a slow name delays no other. True for each entry that answers. */
  meet(meeting: Meeting): Promise<boolean>[] {
    return [
      ...[...this.#listed.values()].map((listed) => listed.meet(meeting, this.#clock, this.#resolveName)),
      // A node that was alone for a while knows other nodes only from its table, which has lost them all.
      ...[...byAddress(this.remembered()).values()].map((node) => this.#greet(node, meeting)),
    ];
  }

  async #greet(address: Address, meeting: Meeting): Promise<boolean> {
    const answers = await meeting.greet(address);
    const found = this.#found.peek(formatAddress(address));
    if (found !== undefined) found.isSilent = !answers;
    return answers;
  }

  /** Remembers a node that has left the routing table. */
  left({ host, port }: Address): void {
    this.#left.set(formatAddress({ host, port }), { host, port });
  }

  /** Found nodes and nodes that have left the routing table, the last one to leave at the end. */
  remembered(): Address[] {
    return [...this.#found.values(), ...this.#left.values()];
  }

  /** As `meet`, for entries missing in the routing table, and for some of the other nodes that are missing there. */
  meetAgain(meeting: Meeting, isInTable: (address: Address) => boolean): Promise<boolean>[] {
    const listed = [...this.#listed.values()].filter(({ addresses }) => !addresses.some(isInTable));
    const others = this.remembered().filter((address) => !isInTable(address));
    // A found node that has left counts as one that has left.
    const once = byAddress(others.toReversed());
    return [
      ...listed.map((one) => one.meet(meeting, this.#clock, this.#resolveName)),
      ...this.#some([...once.values()]).map((address) => this.#greet(address, meeting)),
    ];
  }

  /** The first nodes, and others in turn. After years most nodes do not answer. */
  #some(nodes: readonly Address[]): readonly Address[] {
    if (nodes.length <= MET_AGAIN) return nodes;
    const [first, others] = [nodes.slice(0, MET_AGAIN / 2), nodes.slice(MET_AGAIN / 2)];
    const from = this.#turn % others.length;
    this.#turn = from + MET_AGAIN - first.length;
    return [...first, ...[...others, ...others].slice(from, this.#turn)];
  }

  /** All entries with an address, and with a proven key if one is required; the bootstrap list first. */
  addresses(): Address[] {
    return [...[...this.#listed.values()].flatMap(({ addresses }) => addresses), ...this.#found.values()];
  }

  /** As `addresses`, without entries that did not answer the last time. */
  likely(): Address[] {
    return [
      ...[...this.#listed.values()].flatMap(({ state, addresses }) => (state === 'silent' ? [] : addresses)),
      ...this.#found.values().filter(({ isSilent }) => !isSilent),
    ];
  }
}
