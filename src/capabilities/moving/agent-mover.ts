/**
 * Moves agents between nodes: everything that a node keeps of one, in a document, and back. Each
 * part is the business of the capability whose it is; here they become one. See docs/moving.md.
 */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import {
  type AccessPart,
  type AgentDocument,
  type ChatPart,
  DOCUMENT_VERSION,
  type GroupsPart,
  MAX_AGENT_DOCUMENT_BYTES,
  type NotesPart,
  type OriginsPart,
  type RecordsPart,
  type TunnelsPart,
} from '../../foundation/moving/agent-document.ts';
import { aidAt, badDocument } from '../../foundation/moving/document-fields.ts';

/** The parts of an agent. What `import…` returns writes, in the transaction of the whole. */
export interface AgentParts {
  readonly exportRecords: (aid: Aid) => RecordsPart;
  readonly importRecords: (aid: Aid, part: RecordsPart, delegation: Delegation) => () => void;
  readonly exportAccess: (aid: Aid) => AccessPart | undefined;
  readonly importAccess: (aid: Aid, part: AccessPart | undefined) => () => void;
  readonly exportTunnels: (aid: Aid) => TunnelsPart;
  /** Gives the ports that a tunnel here has already. */
  readonly importTunnels: (aid: Aid, part: TunnelsPart) => () => readonly number[];
  readonly exportOrigins: (aid: Aid) => OriginsPart;
  /** Gives the ports that a local address or a tunnel here has already. */
  readonly importOrigins: (aid: Aid, part: OriginsPart) => () => readonly number[];
  readonly exportEvidence: (aid: Aid) => boolean;
  readonly importEvidence: (aid: Aid, gives: boolean) => () => void;
  /** The signed card; undefined where the agent has none. */
  readonly exportCard: (aid: Aid) => string | undefined;
  readonly importCard: (aid: Aid, card: string | undefined, delegation: Delegation) => () => void;
  readonly exportNotes: (aid: Aid) => NotesPart;
  readonly importNotes: (aid: Aid, part: NotesPart) => () => void;
  readonly exportChat: (aid: Aid) => { part: ChatPart; leftOut: number };
  readonly importChat: (aid: Aid, part: ChatPart) => () => void;
  readonly exportGroups: (aid: Aid) => { part: GroupsPart; leftOut: string[] };
  readonly importGroups: (aid: Aid, part: GroupsPart) => Promise<() => void>;
}

/** Ports of an agent that something else has here. */
export interface PortsTaken {
  readonly tunnels: readonly number[];
  readonly origins: readonly number[];
}

/** What proves an agent, and what it is bound to. */
interface Credentials {
  readonly operationalPrivateKeyHex: string;
  readonly delegationProofHex: string;
  readonly serviceTcp: string;
}

interface MoverDependencies {
  readonly registry: {
    export(aid: Aid): Credentials;
    adopt(credentials: Credentials, meanwhile: (delegation: Delegation) => void): Promise<Aid>;
  };
  readonly parts: AgentParts;
  readonly clock: Clock;
  /** Version of this daemon. */
  readonly version: string;
  /** The label of an agent in the address book; undefined where it has none. */
  label(aid: Aid): string | undefined;
  /** Gives an agent a label, where neither of the two has the other already. */
  setLabel(aid: Aid, label: string): void;
  /** Objects of an agent: they stay where they are. */
  countObjects(aid: Aid): number;
  /** Undoes what `importNotes` wrote outside of the database. */
  undo(aid: Aid): void;
  /** Once the agent is here: what was written past a capability is read by it. Gives the ports that are taken. */
  arrived(aid: Aid): Promise<PortsTaken>;
}

export class AgentMover {
  readonly #deps: MoverDependencies;

  constructor(dependencies: MoverDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Everything that is kept here of an agent, its keys in clear.
   * @throws SvcError `not_found`, `key_locked`, `too_large`
   */
  export(aid: Aid): AgentDocument {
    const { registry, parts, clock, version } = this.#deps;
    const credentials = registry.export(aid);
    const label = this.#deps.label(aid);
    const access = parts.exportAccess(aid);
    const card = parts.exportCard(aid);
    const chat = parts.exportChat(aid);
    const rooms = parts.exportGroups(aid);
    const document: AgentDocument = {
      svcd_agent: DOCUMENT_VERSION,
      svcd_version: version,
      exported_at: clock.now(),
      aid,
      operational_private_key_hex: credentials.operationalPrivateKeyHex,
      delegation_proof_hex: credentials.delegationProofHex,
      service_tcp: credentials.serviceTcp,
      evidence: parts.exportEvidence(aid),
      ...(card === undefined ? {} : { card }),
      ...(label === undefined ? {} : { label }),
      records: parts.exportRecords(aid),
      ...(access === undefined ? {} : { access }),
      tunnels: parts.exportTunnels(aid),
      origins: parts.exportOrigins(aid),
      notes: parts.exportNotes(aid),
      chat: chat.part,
      rooms: rooms.part,
      left_out: {
        chat_entries: chat.leftOut,
        room_copies: rooms.leftOut,
        objects: this.#deps.countObjects(aid),
      },
    };
    // What no node would take in must not be taken for a way out.
    const size = Buffer.byteLength(JSON.stringify(document));
    if (size > MAX_AGENT_DOCUMENT_BYTES)
      throw new SvcError('too_large', {
        message: `The document would have ${size} bytes, and ${MAX_AGENT_DOCUMENT_BYTES} can be imported. Poll the notes that wait, or move the whole node with "svc backup".`,
        details: { size, limit: MAX_AGENT_DOCUMENT_BYTES },
      });
    return document;
  }

  /**
   * Takes an agent in, all of it or nothing. What it published goes out from here, behind the
   * numbers that it has used; where it still runs elsewhere, it is renewed there no more.
   * @returns its AID, and those of its ports that something else has here
   * @throws SvcError `bad_file`, `bad_key`, `bad_delegation`, `bad_service_address`, `agent_exists`
   */
  async import(document: AgentDocument) {
    const { registry, parts } = this.#deps;
    const aid = aidAt('/aid', document.aid);
    const { access, tunnels, origins = [], evidence = false, card, notes, chat, rooms, records, label } = document;
    let refused: PortsTaken = { tunnels: [], origins: [] };
    const keepTunnels = parts.importTunnels(aid, tunnels);
    const keepOrigins = parts.importOrigins(aid, origins);
    const writes = [
      parts.importAccess(aid, access),
      () => void (refused = { tunnels: keepTunnels(), origins: keepOrigins() }),
      parts.importEvidence(aid, evidence),
      parts.importChat(aid, chat),
      await parts.importGroups(aid, rooms),
      ...(label === undefined ? [] : [() => this.#deps.setLabel(aid, label)]),
      // Last: it writes a file.
      parts.importNotes(aid, notes),
    ];
    const credentials = {
      operationalPrivateKeyHex: document.operational_private_key_hex,
      delegationProofHex: document.delegation_proof_hex,
      serviceTcp: document.service_tcp,
    };
    await registry.adopt(credentials, (delegation) => {
      if (delegation.agent !== aid) throw badDocument('/delegation_proof_hex', 'is of another agent');
      try {
        parts.importRecords(aid, records, delegation)();
        parts.importCard(aid, card, delegation)();
        for (const write of writes) write();
      } catch (error) {
        this.#deps.undo(aid);
        throw error;
      }
    });
    const taken = await this.#deps.arrived(aid);
    const portsTaken: PortsTaken = {
      tunnels: [...refused.tunnels, ...taken.tunnels],
      origins: [...refused.origins, ...taken.origins],
    };
    return { aid, portsTaken };
  }
}
