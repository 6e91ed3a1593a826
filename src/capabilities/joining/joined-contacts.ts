/** The nodes by which this one was told to come into its network, beside those of the configuration. Kept across restarts. */
import { formatContact, type NodeContact, parseContact } from '../../foundation/contact.ts';
import { isObject } from '../../foundation/json.ts';

/** Nodes that are kept; the oldest one makes room. */
const MAX_JOINED = 32;
const KEY = 'joined_contacts';

/** Where they are kept. */
export interface JoinedMemory {
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
  readonly #memory: JoinedMemory;

  /** @param network the network that this node is in: nodes of others are kept for when it comes back */
  constructor(network: string, memory: JoinedMemory) {
    this.#network = network;
    this.#memory = memory;
  }

  get #all(): readonly Joined[] {
    const stored = this.#memory.get(KEY);
    return Array.isArray(stored) ? stored.filter(isJoined) : [];
  }

  /** Those of this network, in the order in which they came. */
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
