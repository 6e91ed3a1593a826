/**
 * Exports the whole state of an agent as one document, and imports it on another node. Each capability exports and
 * imports its own part. See docs/moving.md.
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

/**
 * The parts of an agent. Each `import…` validates its part and returns a function that writes it, which runs in the
 * transaction of the import.
 */
export interface AgentParts {
  readonly exportRecords: (aid: Aid) => RecordsPart;
  readonly importRecords: (aid: Aid, part: RecordsPart, delegation: Delegation) => () => void;
  readonly exportAccess: (aid: Aid) => AccessPart | undefined;
  readonly importAccess: (aid: Aid, part: AccessPart | undefined) => () => void;
  readonly exportTunnels: (aid: Aid) => TunnelsPart;
  /** The write returns the ports that another tunnel of this node uses. */
  readonly importTunnels: (aid: Aid, part: TunnelsPart) => () => readonly number[];
  readonly exportOrigins: (aid: Aid) => OriginsPart;
  /** The write returns the ports that a local address or a tunnel of this node uses. */
  readonly importOrigins: (aid: Aid, part: OriginsPart) => () => readonly number[];
  readonly exportEvidence: (aid: Aid) => boolean;
  readonly importEvidence: (aid: Aid, gives: boolean) => () => void;
  /** The signed card; undefined if the agent has none. */
  readonly exportCard: (aid: Aid) => string | undefined;
  readonly importCard: (aid: Aid, card: string | undefined, delegation: Delegation) => () => void;
  readonly exportNotes: (aid: Aid) => NotesPart;
  readonly importNotes: (aid: Aid, part: NotesPart) => () => void;
  readonly exportChat: (aid: Aid) => { part: ChatPart; leftOut: number };
  readonly importChat: (aid: Aid, part: ChatPart) => () => void;
  readonly exportGroups: (aid: Aid) => { part: GroupsPart; leftOut: string[] };
  readonly importGroups: (aid: Aid, part: GroupsPart) => Promise<() => void>;
}

/** Ports of an agent that are already in use on this node. */
export interface PortsTaken {
  readonly tunnels: readonly number[];
  readonly origins: readonly number[];
}

/** The credentials and the service of an agent. */
interface Credentials {
  readonly operationalPrivateKeyHex: string;
  readonly delegationProofHex: string;
  readonly serviceTcp: string;
}

interface MoverDependencies {
  readonly registry: {
    export(aid: Aid): Credentials;
    adopt(credentials: Credentials, writeRest: (delegation: Delegation) => void): Promise<Aid>;
  };
  readonly parts: AgentParts;
  readonly clock: Clock;
  /** Version of this daemon. */
  readonly version: string;
  /** The labels of an agent in the address book. */
  labels(aid: Aid): readonly string[];
  /** Labels an agent, unless it has a label. Skips labels that are in use. */
  setLabels(aid: Aid, labels: readonly string[]): void;
  /** The number of the agent's objects, which are not exported. */
  countObjects(aid: Aid): number;
  /** Reverts the writes of `importNotes` outside the database. */
  undoNotes(aid: Aid): void;
  /** Runs after the import: the capabilities load the imported state. Returns the ports that are in use. */
  onImported(aid: Aid): Promise<PortsTaken>;
}

export class AgentMover {
  readonly #deps: MoverDependencies;

  constructor(dependencies: MoverDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The whole state of an agent, including its keys in clear text.
   * @throws SvcError `not_found`, `key_locked`, `too_large`
   */
  export(aid: Aid): AgentDocument {
    const { registry, parts, clock, version } = this.#deps;
    const credentials = registry.export(aid);
    const [label, ...otherLabels] = this.#deps.labels(aid);
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
      ...(otherLabels.length === 0 ? {} : { other_labels: otherLabels }),
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
    // A document that no node accepts would be useless.
    const size = Buffer.byteLength(JSON.stringify(document));
    if (size > MAX_AGENT_DOCUMENT_BYTES)
      throw new SvcError('too_large', {
        message: `The document would have ${size} bytes, and the limit for imports is ${MAX_AGENT_DOCUMENT_BYTES}. Poll the pending notes, or move the whole node with "svc backup".`,
        details: { size, limit: MAX_AGENT_DOCUMENT_BYTES },
      });
    return document;
  }

  /**
   * Imports an agent completely or not at all. This node publishes its records with higher sequence numbers. If the
   * agent still runs on the other node, that node stops renewing them.
   * @returns its AID, and its ports that are in use here
   * @throws SvcError `bad_file`, `bad_key`, `bad_delegation`, `bad_service_address`, `agent_exists`
   */
  async import(document: AgentDocument) {
    const { registry, parts } = this.#deps;
    const aid = aidAt('/aid', document.aid);
    const { access, tunnels, origins, evidence, card, notes, chat, rooms, records, label, other_labels } = document;
    let refused: PortsTaken = { tunnels: [], origins: [] };
    const keepTunnels = parts.importTunnels(aid, tunnels);
    const keepOrigins = parts.importOrigins(aid, origins);
    const writes = [
      parts.importAccess(aid, access),
      () => void (refused = { tunnels: keepTunnels(), origins: keepOrigins() }),
      parts.importEvidence(aid, evidence),
      parts.importChat(aid, chat),
      await parts.importGroups(aid, rooms),
      ...(label === undefined ? [] : [() => this.#deps.setLabels(aid, [label, ...(other_labels ?? [])])]),
      // Last, because it writes a file.
      parts.importNotes(aid, notes),
    ];
    const credentials = {
      operationalPrivateKeyHex: document.operational_private_key_hex,
      delegationProofHex: document.delegation_proof_hex,
      serviceTcp: document.service_tcp,
    };
    await registry.adopt(credentials, (delegation) => {
      if (delegation.agent !== aid) throw badDocument('/delegation_proof_hex', 'belongs to another agent');
      try {
        parts.importRecords(aid, records, delegation)();
        parts.importCard(aid, card, delegation)();
        for (const write of writes) write();
      } catch (error) {
        this.#deps.undoNotes(aid);
        throw error;
      }
    });
    const taken = await this.#deps.onImported(aid);
    const portsTaken: PortsTaken = {
      tunnels: [...refused.tunnels, ...taken.tunnels],
      origins: [...refused.origins, ...taken.origins],
    };
    return { aid, portsTaken };
  }
}
