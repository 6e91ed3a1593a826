/** Invitations into this node's network, and coming into it by those of others. */

import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { formatContact, type NodeContact, parseContact } from '../../foundation/contact.ts';
import type { InvitationReach, MeetingState } from '../../foundation/domain/joining.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, nativePublicKey } from '../../foundation/identity/aid.ts';
import {
  formatInvitation,
  looksLikeInvitation,
  type PinnedContact,
  parseInvitation,
} from '../../foundation/invitation.ts';
import type { ContactView } from '../../network/dht/bootstrap-nodes.ts';
import type { RecordDht } from '../../network/dht/record-dht.ts';
import type { JoinedContacts } from './joined-contacts.ts';
import { contactsToGive, type NodeFacts } from './own-contacts.ts';

/** How often a node that does not answer is asked: a datagram may get lost. */
const TRIES = 3;
/** Other nodes that an invitation names where strangers do not reach this one. */
const MAX_OTHERS = 3;
/** For how long the network may take to be joined once a node has answered, milliseconds. */
const READY_TIMEOUT_MS = 5_000;

interface JoiningOptions {
  readonly nodeAid: Aid;
  /** Name of the network; empty for the public one. */
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
  /** What the node knows of where it is. */
  readonly facts: () => Pick<NodeFacts, 'known' | 'mapped'>;
  /** The helpers of this node, at their addresses in the record network. */
  readonly helpers: () => readonly PinnedContact[];
}

export interface OwnInvitation {
  readonly invitation: string;
  readonly network: string;
  readonly contacts: readonly NodeContact[];
  readonly reach: InvitationReach;
}

export interface JoinedNetwork {
  readonly network: string;
  /** The node that answered first. */
  readonly by: NodeContact;
  readonly peers: number;
  readonly ready: boolean;
}

/** What to do about a contact that was not met. */
const ADVICE: Readonly<Record<Exclude<MeetingState, 'met'>, string>> = {
  untried: 'It was not tried.',
  unresolved: 'Its name has no address: check it, and the DNS of this machine.',
  ipv6: 'It has no IPv4 address, which nodes of the record network need.',
  silent: 'Nobody answers there: is svcd running, is its UDP port open, and is it on the same network?',
  other_key: 'Another node answers there: it does not prove the key of the invitation. Ask for a new one.',
};

function named(network: string): string {
  return network === '' ? 'the network without a name' : `the network "${network}"`;
}

export class Joining {
  readonly #options: JoiningOptions;
  readonly #deps: JoiningDependencies;

  constructor(options: JoiningOptions, dependencies: JoiningDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /** A line by which another node comes into this network. */
  async invite(): Promise<OwnInvitation> {
    const { nodeAid: from, network } = this.#options;
    const { records, facts } = this.#deps;
    const { inRoutingTables } = records.reachability();
    const { contacts, reach } = contactsToGive({
      ...facts(),
      nodeKey: this.#nodeKey,
      dht: records.address,
      isReached: inRoutingTables,
      others: await this.#others(),
    });
    return { invitation: formatInvitation({ from, network, contacts }), network, contacts, reach };
  }

  get #nodeKey(): Uint8Array {
    const key = nativePublicKey(this.#options.nodeAid);
    if (key === null) throw new SvcError('internal');
    return key;
  }

  /** Nodes that others can come in by: our helpers, or without any some nodes of the table. */
  async #others(): Promise<readonly PinnedContact[]> {
    const { helpers, records } = this.#deps;
    if (helpers().length > 0) return helpers();
    const peers = records.peers().slice(0, MAX_OTHERS);
    const known = await Promise.all(peers.map(async (peer) => ({ peer, at: await records.identify(peer) })));
    return known.flatMap(({ peer: { host, port }, at }) => (at === null ? [] : [{ host, port, nodeKey: at.nodeKey }]));
  }

  /**
   * Comes into the network by an invitation, or by an address as the configuration takes it. It applies at once and is
   * kept across restarts; where nobody answers nothing changes.
   * @throws SvcError `invalid_request`, `self`, `wrong_state` for an invitation into another network, `connect_failed`
   */
  async join(text: string): Promise<JoinedNetwork> {
    const { records, joined } = this.#deps;
    const contacts = this.#contactsOf(text.trim());
    const by = await this.#firstMet(contacts);
    for (const contact of contacts) records.listContact(contact);
    joined.add(contacts);
    const { peers, ready } = await this.#ready();
    return { network: this.#options.network, by, peers, ready };
  }

  #contactsOf(text: string): readonly NodeContact[] {
    const contacts = looksLikeInvitation(text) ? this.#invitedTo(text) : this.#named(text);
    const others = contacts.filter(({ nodeKey }) => nodeKey === undefined || !equalBytes(nodeKey, this.#nodeKey));
    if (others.length > 0) return others;
    throw new SvcError('self', { message: 'This leads to this very node. Use it on another machine.' });
  }

  #named(text: string): readonly NodeContact[] {
    const contact = parseContact(text);
    if (contact !== null) return [contact];
    throw new SvcError('invalid_request', {
      message:
        'Give the whole line that "svc invite" prints on the other machine, or host, host:port or <node aid>@host:port.',
      details: { path: '/to' },
    });
  }

  #invitedTo(text: string): readonly NodeContact[] {
    const { from, network, contacts } = parseInvitation(text);
    if (from === this.#options.nodeAid)
      throw new SvcError('self', { message: 'This is an invitation by this very node. Use it on another machine.' });
    if (network === this.#options.network) return contacts;
    throw new SvcError('wrong_state', {
      message: `The invitation is into ${named(network)}, and this node is in ${named(this.#options.network)}. Set network = ${JSON.stringify(network)} in config.toml, start svcd again, and join then.`,
      details: { network, own_network: this.#options.network },
    });
  }

  /** The first of them that answers. */
  async #firstMet(contacts: readonly NodeContact[]): Promise<NodeContact> {
    const states = new Map<string, MeetingState>();
    const attempts = contacts.map(async (contact) => {
      const state = await this.#meet(contact);
      states.set(formatContact(contact), state);
      if (state === 'met') return contact;
      throw new SvcError('connect_failed');
    });
    try {
      return await Promise.any(attempts);
    } catch (cause) {
      const told = [...states].map(([contact, state]) => ({ contact, state }));
      const [worst = 'silent'] = (['other_key', 'silent', 'unresolved', 'ipv6'] as const).filter((one) =>
        told.some(({ state }) => state === one),
      );
      const [one] = told;
      const what =
        told.length === 1 ? `${one?.contact} could not be met.` : `None of the ${told.length} nodes could be met.`;
      throw new SvcError('connect_failed', {
        message: `${what} ${ADVICE[worst]}`,
        details: { contacts: told },
        cause,
      });
    }
  }

  async #meet(contact: NodeContact): Promise<MeetingState> {
    let state: MeetingState = 'untried';
    for (let tries = 0; tries < TRIES && (state === 'untried' || state === 'silent'); tries++)
      state = await this.#deps.records.join(contact);
    return state;
  }

  /** Waits until the network is joined, or not any longer. */
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

  /** The nodes to come in by, and whether they come from the configuration or were joined. */
  contacts(): readonly (ContactView & { readonly isJoined: boolean })[] {
    const { records, joined } = this.#deps;
    return records.contacts().map((view) => ({ ...view, isJoined: joined.has(view.contact) }));
  }

  /**
   * Takes back a `join`.
   * @throws SvcError `not_found`; `wrong_state` for what the configuration names
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
        message: 'The configuration names this node: take it out of bootstrap, and start svcd again.',
      });
    throw new SvcError('not_found', { message: 'This node is none of the contacts. "svc contacts" shows them.' });
  }
}
