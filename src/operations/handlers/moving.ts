/** Handlers of the operations that move agents between nodes. */
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AgentDocument } from '../../foundation/moving/agent-document.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { movingOperations } from '../moving.ts';
import type { CallContext, Handlers } from '../operation.ts';

/** Ports of an agent that are already in use on this node. */
export interface PortsTaken {
  readonly tunnels: readonly number[];
  readonly origins: readonly number[];
}

export interface AgentMover {
  /**
   * The whole state of an agent, including its keys in clear text.
   * @throws SvcError `not_found`, `key_locked`, `too_large`
   */
  export(aid: Aid): AgentDocument;
  /**
   * Imports an agent completely or not at all. This node publishes its records with higher sequence numbers. If the
   * agent still runs on the other node, that node stops renewing them.
   * @returns its AID, and its ports that are in use here
   * @throws SvcError `bad_file`, `bad_key`, `bad_delegation`, `bad_service_address`, `agent_exists`
   */
  import(document: AgentDocument): Promise<{ readonly aid: Aid; readonly portsTaken: PortsTaken }>;
}

/** @throws SvcError `local_only`, even if a surface did not check it */
function mustBeLocal({ origin }: CallContext): void {
  if (origin !== 'local') throw new SvcError('local_only');
}

export function movingHandlers(mover: AgentMover): Handlers<typeof movingOperations> {
  return {
    agentBundle: ({ aid }, context) => {
      mustBeLocal(context);
      return mover.export(aid);
    },
    agentImport: async (document, context) => {
      mustBeLocal(context);
      const { aid, portsTaken } = await mover.import(document);
      return {
        aid,
        status: 'registered',
        service_tcp: document.service_tcp,
        services: document.records.kept.filter(({ type }) => type === RECORD.service).length,
        tunnels: document.tunnels.length - portsTaken.tunnels.length,
        origins: document.origins.length - portsTaken.origins.length,
        ports_taken: [...portsTaken.tunnels, ...portsTaken.origins].sort((a, b) => a - b),
        notes: document.notes.waiting.length,
        conversations: document.chat.filter(({ state }) => state === 'friends').length,
        groups: document.groups.joined.length,
      };
    },
  };
}
