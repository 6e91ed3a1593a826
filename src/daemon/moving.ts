/**
 * Exports the whole state of an agent as one document, and imports it on another node. Each capability exports and
 * imports its own part. See docs/moving.md.
 */
import { exportAccess, importAccess } from '../capabilities/access/moving.ts';
import { exportCard, importCard } from '../capabilities/cards/moving.ts';
import { exportChat, importChat } from '../capabilities/chat/moving.ts';
import { exportRecords, importRecords } from '../capabilities/directory/moving.ts';
import { exportGroups, importGroups } from '../capabilities/groups/moving.ts';
import { exportNotes, importNotes } from '../capabilities/notes/notes.ts';
import { exportOrigins, importOrigins } from '../capabilities/origins/moving.ts';
import { exportTunnels, importTunnels } from '../capabilities/tunnels/moving.ts';
import { unixSeconds } from '../foundation/clock.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Aid } from '../foundation/identity/aid.ts';
import { type AgentDocument, DOCUMENT_VERSION, MAX_AGENT_DOCUMENT_BYTES } from '../foundation/moving/agent-document.ts';
import { aidAt, badDocument } from '../foundation/moving/document-fields.ts';
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
import type { AgentMover, PortsTaken } from '../operations/handlers/moving.ts';
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

  /** Objects are not exported. A card is the part of an agent that names one. */
  const countObjects = (aid: Aid): number => {
    const card = cards.own(aid);
    const hasCard = card !== null && objects.get(aid, card.objectId) !== null;
    return objects.usage(aid).count - (hasCard ? 1 : 0);
  };

  const exportAgent = (aid: Aid): AgentDocument => {
    const credentials = c.registry.export(aid);
    const [label, ...otherLabels] = c.addressBook.labels(aid);
    const accessPart = exportAccess(access, aid);
    const card = exportCard(cards, aid);
    const talks = exportChat(chat, aid);
    const exportedGroups = exportGroups(groups, aid);
    c.directory.exported(aid);
    const document: AgentDocument = {
      svcd_agent: DOCUMENT_VERSION,
      svcd_version: VERSION,
      exported_at: clock.now(),
      aid,
      operational_private_key_hex: credentials.operationalPrivateKeyHex,
      delegation_proof_hex: credentials.delegationProofHex,
      service_tcp: credentials.serviceTcp,
      evidence: agents.givesEvidence(aid),
      ...(card === undefined ? {} : { card }),
      ...(label === undefined ? {} : { label }),
      ...(otherLabels.length === 0 ? {} : { other_labels: otherLabels }),
      records: exportRecords(publications, aid),
      ...(accessPart === undefined ? {} : { access: accessPart }),
      tunnels: exportTunnels(tunnels, aid),
      origins: exportOrigins(origins.memory, aid),
      notes: exportNotes(notes, aid),
      chat: talks.part,
      groups: exportedGroups.part,
      left_out: { chat_entries: talks.leftOut, group_copies: exportedGroups.leftOut, objects: countObjects(aid) },
    };
    // A document that no node accepts would be useless.
    const size = Buffer.byteLength(JSON.stringify(document));
    if (size > MAX_AGENT_DOCUMENT_BYTES)
      throw new SvcError('too_large', {
        message: `The document would have ${size} bytes, and the limit for imports is ${MAX_AGENT_DOCUMENT_BYTES}. Poll the pending notes, or move the whole node with "svc backup".`,
        details: { size, limit: MAX_AGENT_DOCUMENT_BYTES },
      });
    return document;
  };

  // Each `import…` validates its part and returns a function that writes it, which runs in the transaction of the import.
  const importAgent = async (document: AgentDocument) => {
    const aid = aidAt('/aid', document.aid);
    const { label, other_labels } = document;
    let refused: PortsTaken = { tunnels: [], origins: [] };
    const keepTunnels = importTunnels(tunnels, aid, document.tunnels);
    const keepOrigins = importOrigins(origins, aid, document.origins);
    const writes = [
      importAccess(access, aid, document.access),
      () => void (refused = { tunnels: keepTunnels(), origins: keepOrigins() }),
      () => agents.setEvidence(aid, document.evidence),
      importChat(chat, aid, document.chat),
      await importGroups(groups, aid, document.groups, clock.now()),
      ...(label === undefined ? [] : [() => c.addressBook.label(aid, label, ...(other_labels ?? []))]),
      // Last, because it writes a file.
      importNotes(notes, aid, document.notes, clock.now()),
    ];
    const credentials = {
      operationalPrivateKeyHex: document.operational_private_key_hex,
      delegationProofHex: document.delegation_proof_hex,
      serviceTcp: document.service_tcp,
    };
    await c.registry.adopt(credentials, (delegation) => {
      if (delegation.agent !== aid) throw badDocument('/delegation_proof_hex', 'belongs to another agent');
      try {
        importRecords(publications, aid, document.records, delegation, clock.now())();
        const verifyDelegation = delegations.verify.bind(delegations);
        const cardParts = { store: cards, now: unixSeconds(clock), verifyDelegation };
        importCard(cardParts, aid, document.card, delegation)();
        for (const write of writes) write();
      } catch (error) {
        c.notes.discardSecrets(aid);
        throw error;
      }
    });
    // The capabilities load the imported state.
    c.accessLists.reload(aid);
    c.groups.imported(aid);
    await c.ownCards.complete(aid);
    const taken = { tunnels: await c.tunnels.resume(aid), origins: await c.origins.resume(aid) };
    const portsTaken: PortsTaken = {
      tunnels: [...refused.tunnels, ...taken.tunnels],
      origins: [...refused.origins, ...taken.origins],
    };
    return { aid, portsTaken };
  };
  return { export: exportAgent, import: importAgent };
}
