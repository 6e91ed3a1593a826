/** The contacts that this node joined with `svc join`, in addition to the configured ones. They survive restarts. */
import { formatContact, type NodeContact, parseContact } from '../foundation/address.ts';
import { calledName } from '../foundation/called-name.ts';
import { nativeAid } from '../foundation/identity/aid.ts';
import type { Invitation } from '../foundation/invitation.ts';
import { isObject } from '../foundation/json.ts';

/** Maximum of stored contacts. A new contact replaces the oldest. */
const MAX_JOINED = 32;
const KEY = 'joined_contacts';

/** Storage of the contacts. */
export interface JoinedStorage {
  get(key: string): unknown;
  set(key: string, value: readonly Joined[]): void;
}

type Joined = {
  readonly contact: string;
  readonly network: string;
  /** The name that the node gave itself in its invitation. */
  readonly name?: string;
};

function isJoined(value: unknown): value is Joined {
  return isObject(value) && typeof value['contact'] === 'string' && typeof value['network'] === 'string';
}

export class JoinedContacts {
  readonly #network: string;
  readonly #memory: JoinedStorage;

  /** @param network the current network of this node; contacts of other networks stay stored */
  constructor(network: string, memory: JoinedStorage) {
    this.#network = network;
    this.#memory = memory;
  }

  get #all(): readonly Joined[] {
    const stored = this.#memory.get(KEY);
    return Array.isArray(stored) ? stored.filter(isJoined) : [];
  }

  /** The contacts of the current network, oldest first. */
  get current(): NodeContact[] {
    const here = this.#all.filter(({ network }) => network === this.#network);
    return here.flatMap(({ contact }) => parseContact(contact) ?? []);
  }

  has(contact: NodeContact): boolean {
    return this.current.some((one) => formatContact(one) === formatContact(contact));
  }

  /** The name that the node of a contact gave itself. */
  nameOf(contact: NodeContact): string | undefined {
    const wanted = formatContact(contact);
    const found = this.#all.find((one) => one.network === this.#network && one.contact === wanted);
    return calledName(found?.name);
  }

  /** @param invitation that named the contacts */
  add(contacts: readonly NodeContact[], invitation: Pick<Invitation, 'from' | 'name'> | null = null): void {
    const { from, name } = invitation ?? {};
    const added = contacts.map((contact): Joined => {
      const isInviting = name !== undefined && contact.nodeKey !== undefined && nativeAid(contact.nodeKey) === from;
      return { contact: formatContact(contact), network: this.#network, ...(isInviting ? { name } : {}) };
    });
    this.#memory.set(KEY, [...this.#without(contacts), ...added].slice(-MAX_JOINED));
  }

  remove(contact: NodeContact): void {
    this.#memory.set(KEY, this.#without([contact]));
  }

  #without(contacts: readonly NodeContact[]): Joined[] {
    const gone = new Set(contacts.map(formatContact));
    return this.#all.filter(({ contact, network }) => network !== this.#network || !gone.has(contact));
  }
}
