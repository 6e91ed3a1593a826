/** Moving agents: the parts of an agent, each from its capability. */
import { exportAccess, importAccess } from '../capabilities/access/moving.ts';
import { exportChat, importChat } from '../capabilities/chat/moving.ts';
import { exportRecords, importRecords } from '../capabilities/directory/moving.ts';
import { AgentMover } from '../capabilities/moving/agent-mover.ts';
import { exportNotes, importNotes } from '../capabilities/notes/moving.ts';
import { exportRooms, importRooms } from '../capabilities/rooms/moving.ts';
import { exportTunnels, importTunnels } from '../capabilities/tunnels/moving.ts';
import { AccessRepository } from '../foundation/store/access.ts';
import { ChatStore } from '../foundation/store/chat.ts';
import { ChatLog } from '../foundation/store/chat-log.ts';
import { NoteStore } from '../foundation/store/notes.ts';
import { ObjectRepository } from '../foundation/store/objects.ts';
import { PublicationStore } from '../foundation/store/publications.ts';
import { RoomEntryStore } from '../foundation/store/room-entries.ts';
import { RoomStore } from '../foundation/store/rooms.ts';
import { TunnelStore } from '../foundation/store/tunnels.ts';
import { VERSION } from '../foundation/version.ts';
import type { Capabilities } from './capabilities.ts';
import type { Foundation } from './foundation.ts';

/** What of the capabilities a move needs. */
export interface MoverSources {
  readonly registry: Pick<Capabilities['registry'], 'export' | 'adopt'>;
  readonly notes: Pick<Capabilities['notes'], 'exportSecrets' | 'importSecrets' | 'discardSecrets'>;
  readonly addressBook: Pick<Capabilities['addressBook'], 'get' | 'label'>;
  readonly accessLists: Pick<Capabilities['accessLists'], 'reload'>;
  readonly tunnels: Pick<Capabilities['tunnels'], 'resume'>;
}

export function buildMover(
  { store, clock, delegations }: Pick<Foundation, 'store' | 'clock' | 'delegations'>,
  c: MoverSources,
): AgentMover {
  const publications = new PublicationStore(store);
  const access = new AccessRepository(store);
  const tunnels = new TunnelStore(store);
  const chat = { store: new ChatStore(store), entries: new ChatLog(store) };
  const rooms = { rooms: new RoomStore(store), entries: new RoomEntryStore(store), delegations };
  const objects = new ObjectRepository(store);
  const notes = {
    store: new NoteStore(store),
    exportSecrets: c.notes.exportSecrets.bind(c.notes),
    importSecrets: c.notes.importSecrets.bind(c.notes),
  };
  return new AgentMover({
    registry: c.registry,
    clock,
    version: VERSION,
    parts: {
      exportRecords: (aid) => exportRecords(publications, aid),
      importRecords: (aid, part, delegation) => importRecords(publications, aid, part, delegation, clock.now()),
      exportAccess: (aid) => exportAccess(access, aid),
      importAccess: (aid, part) => importAccess(access, aid, part),
      exportTunnels: (aid) => exportTunnels(tunnels, aid),
      importTunnels: (aid, part) => importTunnels(tunnels, aid, part),
      exportNotes: (aid) => exportNotes(notes, aid),
      importNotes: (aid, part) => importNotes(notes, aid, part, clock.now()),
      exportChat: (aid) => exportChat(chat, aid),
      importChat: (aid, part) => importChat(chat, aid, part),
      exportRooms: (aid) => exportRooms(rooms, aid),
      importRooms: (aid, part) => importRooms(rooms, aid, part, clock.now()),
    },
    label: (aid) => c.addressBook.get().aliases[aid],
    setLabel: (aid, label) => c.addressBook.label(aid, label),
    countObjects: (aid) => objects.usage(aid).count,
    undo: (aid) => c.notes.discardSecrets(aid),
    arrived: async (aid) => {
      c.accessLists.reload(aid);
      return c.tunnels.resume(aid);
    },
  });
}
