/** Messages between agents: notes, chat, groups, and invitations to a network. */
import type { AddressBook } from '../../capabilities/address-book/address-book.ts';
import { Chat } from '../../capabilities/chat/chat.ts';
import type { EventLog } from '../../capabilities/events/event-log.ts';
import { Groups } from '../../capabilities/groups/groups.ts';
import { Joining } from '../../capabilities/joining/joining.ts';
import { Notes } from '../../capabilities/notes/notes.ts';
import type { ObjectService } from '../../capabilities/objects/object-service.ts';
import { detach } from '../../foundation/detached.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { ChatStore } from '../../foundation/store/chat.ts';
import { ChatLog } from '../../foundation/store/chat-log.ts';
import { GroupEntryStore } from '../../foundation/store/group-entries.ts';
import { GroupStore } from '../../foundation/store/groups.ts';
import { NoteCopyStore } from '../../foundation/store/note-copies.ts';
import { NoteOutboxStore } from '../../foundation/store/note-outbox.ts';
import { NoteStore } from '../../foundation/store/notes.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import { nodeName } from '../node-name.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { DirectoryParts } from './directory.ts';

// Invitations to this network, and joining other networks.

export function buildJoining(
  { clock, config, configuration, node }: Foundation,
  n: Network,
  { registry }: Agents,
  { directory }: DirectoryParts,
  onEntry: (entry: Aid, token: string) => void,
) {
  const { records, joined, ownAddresses, portMapper, reach, outages } = n;
  const joining = new Joining(
    { nodeAid: node.aid, network: config.network },
    {
      clock,
      records,
      joined,
      facts: () => ({
        known: ownAddresses.known(),
        mapped: portMapper
          .view()
          .ports.filter(({ internalPort }) => internalPort === records.address.port)
          .map(({ external }) => external),
      }),
      name: () => nodeName(configuration.current.name),
      agentName: (aid) => (registry.identity(aid) !== null ? directory.summary(aid).name : undefined),
      tlsPorts: reach.tlsPorts,
      exit: {
        state: () => reach.fallback.status().state,
        settled: () => reach.fallback.settled(),
        through: (contacts) => reach.fallback.joinThrough(contacts),
      },
      why: (since) => outages.explainFailure(since),
      helpers: () => reach.helpers.inRecordNetwork,
      onEntry,
    },
  );
  return { joining };
}

// Groups, with invitations sent as notes.

export function buildGroups(
  { life, parts, store, delegations }: Foundation,
  { registry, onDeleted }: Agents,
  { links, events, objects, notes, isKnown }: Shared & Messages,
  { records }: Network,
): Groups {
  const groups = new Groups({
    groups: new GroupStore(store),
    entries: new GroupEntryStore(store),
    links,
    notes,
    objects: { has: (aid, objectId) => objects.stat(aid, objectId) !== null },
    network: records,
    delegations,
    events,
    ...parts,
    identity: (aid) => registry.identity(aid),
    isKnown,
    clockAheadMs: () => records.clockAheadMs(),
  });
  life.add('acting', groups);
  onDeleted((aid) => groups.forget(aid));
  return groups;
}

/** Shared dependencies of notes, chat and groups. */
export interface Shared {
  readonly links: AgentLinks;
  readonly events: EventLog;
  readonly objects: ObjectService;
}

interface Parts extends Shared {
  readonly access: Access;
  readonly addressBook: AddressBook;
}

export type Messages = ReturnType<typeof buildMessages>;

export function buildMessages(
  { life, parts, store, keys, seen, delegations }: Foundation,
  { records, resolver }: Network,
  { registry }: Agents,
  { directory, publications, newAids, published }: DirectoryParts,
  { links, events, objects, access, addressBook }: Parts,
) {
  const chatStore = new ChatStore(store);
  const isKnown = (aid: Aid, peer: Aid): boolean =>
    access.access.isNamed(aid, peer) ||
    chatStore.pair(aid, peer)?.state === 'friends' ||
    peer in addressBook.get().aliases;
  const identity = (aid: Aid) => registry.identity(aid);
  const common = { ...parts, links, events, network: records, identity, isKnown };
  const notes = new Notes({
    ...common,
    store: new NoteStore(store),
    copies: new NoteCopyStore(store),
    outbox: new NoteOutboxStore(store),
    vault: keys,
    directory: {
      published: (aid, type) => publications.publications(aid).find((row) => row.type === type) ?? null,
      publishRecord: (aid, type, payload, ttl) => directory.publishRecord(aid, type, payload, ttl),
    },
    delegations,
    agents: (cursor, limit) => {
      const page = registry.list(limit, cursor);
      return { aids: page.agents.map((agent) => agent.aid), next: page.nextCursor };
    },
    isNew: (aid) => newAids.has(aid),
    newestDelegation: (aid) => seen.newest(aid),
    approach: (record) => {
      resolver.learn(record);
      detach(links.approach(record.aid));
    },
    usualRttMs: () => records.usualRttMs(),
    clockAheadMs: () => records.clockAheadMs(),
  });
  life.add('acting', notes);
  directory.accompany((aid) => notes.keyToPublish(aid));
  published.add((record) => notes.published(record));
  registry.beforeRotation((aid) => notes.beforeRotation(aid));
  const chat = new Chat({
    ...common,
    store: chatStore,
    entries: new ChatLog(store),
    objects: {
      put: (aid, path) => objects.put(aid, { path }),
      has: (aid, objectId) => objects.stat(aid, objectId),
    },
  });
  life.add('acting', chat);
  registry.onChange((change) => {
    notes.agentChanged(change);
    chat.agentChanged(change);
  });
  return { notes, chat, isKnown };
}
