/** The contacts that this node joined with `svc join`, in addition to the configured ones. They survive restarts. */
import { formatContact, type NodeContact, parseContact } from '../foundation/address.ts';
import { isObject } from '../foundation/json.ts';

/** Maximum of stored contacts. A new contact replaces the oldest. */
const MAX_JOINED = 32;
const KEY = 'joined_contacts';

/** Storage of the contacts. */
export interface JoinedStorage {
  get(key: string): unknown;
  set(key: string, value: readonly { readonly contact: string; readonly network: string }[]): void;
}

interface Joined {
  readonly contact: string;
  readonly network: string;
}

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

  add(contacts: readonly NodeContact[]): void {
    const added = contacts.map((contact) => ({ contact: formatContact(contact), network: this.#network }));
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
