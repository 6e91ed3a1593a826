/** The nodes to turn to when the routing table is empty: the bootstrap list, what mDNS found, what was known before. */
import { lookup } from 'node:dns/promises';
import { isIPv4, isIPv6 } from 'node:net';
import { type Address, formatAddress, formatContact, type NodeContact } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { MeetingState, ProofState } from '../../foundation/domain/joining.ts';
import { IP_SCOPE } from '../../foundation/ip.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { nodeScope } from './node-address.ts';

/** Found and remembered nodes that are kept beside the bootstrap list. */
const MAX_FOUND = 32;
/** Nodes that left the routing table and are remembered. */
const MAX_LEFT = 32;
/** Addresses of one name that are turned to. */
export const MAX_ADDRESSES_PER_NAME = 8;
/** For how long a resolved name is used before it is asked again. */
const NAME_TTL_MS = 300_000;

export interface ContactView {
  readonly contact: NodeContact;
  readonly state: MeetingState;
  /** Where its name leads, as far as that is known. */
  readonly addresses: readonly Address[];
}

/** How nodes are turned to. */
export interface Meeting {
  /** False where no node answers. */
  greet(address: Address): Promise<boolean>;
  /** As `greet`, and has the node prove a key. */
  prove(address: Address, nodeKey: Uint8Array): Promise<ProofState>;
}

/** The IP addresses of a host name. */
type ResolveName = (name: string) => Promise<readonly string[]>;

async function systemResolver(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}

/** One entry of the list. */
class Listed {
  readonly contact: NodeContact;
  state: MeetingState = 'untried';
  /** IPv4 addresses. */
  hosts: readonly string[] = [];
  /** When its name was last resolved, on the clock. */
  #resolvedAt = Number.NEGATIVE_INFINITY;
  /** Addresses that have proven the key, where one is asked for. */
  readonly #proven = new Set<string>();

  constructor(contact: NodeContact) {
    this.contact = contact;
    if (isIPv4(contact.host)) this.hosts = [contact.host];
  }

  get all(): Address[] {
    return this.hosts.map((host) => ({ host, port: this.contact.port }));
  }

  /** Those that may be turned to without another look. */
  get addresses(): Address[] {
    const { all } = this;
    return this.contact.nodeKey === undefined ? all : all.filter((address) => this.#proven.has(formatAddress(address)));
  }

  /** Looks the name up where that has not been done, is long ago, or led nowhere. What it led to before stays where nothing comes. */
  async #resolve(clock: Clock, resolveName: ResolveName): Promise<void> {
    const { host } = this.contact;
    const isFresh = this.state === 'met' && clock.now() - this.#resolvedAt < NAME_TTL_MS;
    if (isIPv4(host) || isFresh) return;
    const found = isIPv6(host) ? [host] : await resolveName(host).catch(() => []);
    const hosts = [...new Set(found.filter((one) => isIPv4(one)))].slice(0, MAX_ADDRESSES_PER_NAME);
    if (hosts.length > 0) this.hosts = hosts;
    else if (this.hosts.length === 0) this.state = found.length > 0 ? 'ipv6' : 'unresolved';
    this.#resolvedAt = clock.now();
  }

  /** Turns to it: true as soon as a node has answered, and proven the key where one is asked for. */
  async meet(meeting: Meeting, clock: Clock, resolveName: ResolveName): Promise<boolean> {
    await this.#resolve(clock, resolveName);
    if (this.hosts.length === 0) return false;
    const states = await Promise.all(this.all.map((address) => this.#turnTo(address, meeting)));
    const [best = 'silent'] = (['met', 'other_key'] as const).filter((state) => states.includes(state));
    this.state = best;
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

export class BootstrapNodes {
  readonly #clock: Clock;
  readonly #resolveName: ResolveName;
  /** By their texts, in the order of the list. */
  readonly #listed: Map<string, Listed>;
  readonly #found = new LruCache<string, Address>({ maxEntries: MAX_FOUND });
  readonly #left = new LruCache<string, Address>({ maxEntries: MAX_LEFT });

  /** @param resolveName default: the resolver of the system */
  constructor(bootstrap: readonly NodeContact[], clock: Clock, resolveName: ResolveName = systemResolver) {
    this.#clock = clock;
    this.#resolveName = resolveName;
    this.#listed = new Map(bootstrap.map((contact) => [formatContact(contact), new Listed(contact)]));
  }

  /** Adds a node that was found or remembered; false for an address that cannot be one, or is known. */
  add(address: Address): boolean {
    if (nodeScope(address.host) === IP_SCOPE.none || address.port < 1 || address.port > 0xffff) return false;
    const key = formatAddress(address);
    if (this.#found.has(key)) return false;
    this.#found.set(key, { host: address.host, port: address.port });
    return true;
  }

  /** Turns to a contact that need not be on the list; it is put there where it is met. */
  async join(contact: NodeContact, meeting: Meeting): Promise<MeetingState> {
    const key = formatContact(contact);
    const listed = this.#listed.get(key) ?? new Listed(contact);
    if (await listed.meet(meeting, this.#clock, this.#resolveName)) this.list(contact, listed);
    return listed.state;
  }

  /** Puts a contact on the list, where it is not there yet. */
  list(contact: NodeContact, listed: Listed = new Listed(contact)): void {
    const key = formatContact(contact);
    if (!this.#listed.has(key)) this.#listed.set(key, listed);
  }

  /** Takes a contact from the list. */
  forget(contact: NodeContact): void {
    this.#listed.delete(formatContact(contact));
  }

  /** The list, and how each entry fared. */
  contacts(): ContactView[] {
    return [...this.#listed.values()].map(({ contact, state, all }) => ({ contact, state, addresses: all }));
  }

  /** Turns to all of them at once, each by itself: a slow name holds up no other. True for each that answers. */
  meet(meeting: Meeting): Promise<boolean>[] {
    return [
      ...[...this.#listed.values()].map((listed) => listed.meet(meeting, this.#clock, this.#resolveName)),
      ...[...this.#found.values()].map((address) => meeting.greet(address)),
    ];
  }

  /** Remembers a node that has left the routing table. */
  left({ host, port }: Address): void {
    this.#left.set(formatAddress({ host, port }), { host, port });
  }

  /** As `meet`, of those that are not in the routing table, and of the nodes that have left it. */
  meetAgain(meeting: Meeting, isInTable: (address: Address) => boolean): Promise<boolean>[] {
    const listed = [...this.#listed.values()].filter(({ addresses }) => !addresses.some(isInTable));
    const others = [...this.#found.values(), ...this.#left.values()].filter((address) => !isInTable(address));
    const once = new Map(others.map((address) => [formatAddress(address), address]));
    return [
      ...listed.map((one) => one.meet(meeting, this.#clock, this.#resolveName)),
      ...[...once.values()].map((address) => meeting.greet(address)),
    ];
  }

  /** All of them that have an address now, and have proven their key where they must; the bootstrap list first. */
  addresses(): Address[] {
    return [...[...this.#listed.values()].flatMap(({ addresses }) => addresses), ...this.#found.values()];
  }
}
