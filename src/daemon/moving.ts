/** Moving agents: collects the parts of an agent from its capabilities. */
import { exportAccess, importAccess } from '../capabilities/access/moving.ts';
import { exportCard, importCard } from '../capabilities/cards/moving.ts';
import { exportChat, importChat } from '../capabilities/chat/moving.ts';
import { exportRecords, importRecords } from '../capabilities/directory/moving.ts';
import { exportGroups, importGroups } from '../capabilities/groups/moving.ts';
import { AgentMover } from '../capabilities/moving/agent-mover.ts';
import { exportNotes, importNotes } from '../capabilities/notes/notes.ts';
import { exportOrigins, importOrigins } from '../capabilities/origins/moving.ts';
import { exportTunnels, importTunnels } from '../capabilities/tunnels/moving.ts';
import { unixSeconds } from '../foundation/clock.ts';
import { AccessRepository } from '../foundation/store/access.ts';
import { AgentStore } from '../foundation/store/agents.ts';
import { CardStore } from '../foundation/store/cards.ts';
import { ChatStore } from '../foundation/store/chat.ts';
import { ChatLog } from '../foundation/store/chat-log.ts';
import { GroupEntryStore } from '../foundation/store/group-entries.ts';
import { GroupStore } from '../foundation/store/groups.ts';
import { NoteOutboxStore } from '../foundation/store/note-outbox.ts';
import { NoteStore } from '../foundation/store/notes.ts';
import { ObjectRepository } from '../foundation/store/objects.ts';
import { OriginStore } from '../foundation/store/origins.ts';
import { PublicationStore } from '../foundation/store/publications.ts';
import { TunnelStore } from '../foundation/store/tunnels.ts';
import { VERSION } from '../foundation/version.ts';
import type { Capabilities } from './capabilities.ts';
import type { Foundation } from './foundation.ts';

/** The capabilities that a move needs. */
export interface MoverSources {
  readonly registry: Pick<Capabilities['registry'], 'export' | 'adopt'>;
  readonly directory: Pick<Capabilities['directory'], 'exported'>;
  readonly notes: Pick<
    Capabilities['notes'],
    'discardDelivered' | 'exportSecrets' | 'importSecrets' | 'discardSecrets'
  >;
  readonly addressBook: Pick<Capabilities['addressBook'], 'labels' | 'label'>;
  readonly accessLists: Pick<Capabilities['accessLists'], 'reload'>;
  readonly tunnels: Pick<Capabilities['tunnels'], 'resume'>;
  readonly origins: Pick<Capabilities['origins'], 'resume'>;
  readonly ownCards: Pick<Capabilities['ownCards'], 'complete'>;
  readonly groups: Pick<Capabilities['groups'], 'admitted' | 'imported'>;
}

export function buildMover(
  { store, secrets, clock, delegations }: Pick<Foundation, 'store' | 'secrets' | 'clock' | 'delegations'>,
  c: MoverSources,
): AgentMover {
  const publications = new PublicationStore(store);
  const access = new AccessRepository(store);
  const tunnels = new TunnelStore(store, secrets);
  const chat = { store: new ChatStore(store), entries: new ChatLog(store) };
  const groups = {
    groups: new GroupStore(store),
    entries: new GroupEntryStore(store),
    delegations,
    admitted: c.groups.admitted.bind(c.groups),
  };
  const objects = new ObjectRepository(store);
  const agents = new AgentStore(store);
  const cards = new CardStore(store);
  const origins = {
    memory: new OriginStore(store, secrets),
    clock,
    tunnelPorts: () => tunnels.list().map(({ localPort }) => localPort),
  };
  const notes = {
    store: new NoteStore(store),
    outbox: new NoteOutboxStore(store),
    discardDelivered: c.notes.discardDelivered.bind(c.notes),
    exportSecrets: c.notes.exportSecrets.bind(c.notes),
    importSecrets: c.notes.importSecrets.bind(c.notes),
  };
  return new AgentMover({
    registry: c.registry,
    clock,
    version: VERSION,
    parts: {
      exportRecords: (aid) => {
        c.directory.exported(aid);
        return exportRecords(publications, aid);
      },
      importRecords: (aid, part, delegation) => importRecords(publications, aid, part, delegation, clock.now()),
      exportAccess: (aid) => exportAccess(access, aid),
      importAccess: (aid, part) => importAccess(access, aid, part),
      exportTunnels: (aid) => exportTunnels(tunnels, aid),
      importTunnels: (aid, part) => importTunnels(tunnels, aid, part),
      exportOrigins: (aid) => exportOrigins(origins.memory, aid),
      importOrigins: (aid, part) => importOrigins(origins, aid, part),
      exportEvidence: (aid) => agents.givesEvidence(aid),
      importEvidence: (aid, gives) => () => agents.setEvidence(aid, gives),
      exportCard: (aid) => exportCard(cards, aid),
      importCard: (aid, card, delegation) => {
        const verifyDelegation = delegations.verify.bind(delegations);
        return importCard({ store: cards, now: unixSeconds(clock), verifyDelegation }, aid, card, delegation);
      },
      exportNotes: (aid) => exportNotes(notes, aid),
      importNotes: (aid, part) => importNotes(notes, aid, part, clock.now()),
      exportChat: (aid) => exportChat(chat, aid),
      importChat: (aid, part) => importChat(chat, aid, part),
      exportGroups: (aid) => exportGroups(groups, aid),
      importGroups: (aid, part) => importGroups(groups, aid, part, clock.now()),
    },
    labels: (aid) => c.addressBook.labels(aid),
    // An old label that looks like an address must not prevent the move.
    setLabels: (aid, labels) => c.addressBook.label(aid, ...labels),
    countObjects: (aid) => {
      const card = cards.own(aid);
      const hasCard = card !== null && objects.get(aid, card.objectId) !== null;
      return objects.usage(aid).count - (hasCard ? 1 : 0);
    },
    undoNotes: (aid) => c.notes.discardSecrets(aid),
    onImported: async (aid) => {
      c.accessLists.reload(aid);
      c.groups.imported(aid);
      await c.ownCards.complete(aid);
      return { tunnels: await c.tunnels.resume(aid), origins: await c.origins.resume(aid) };
    },
  });
}
