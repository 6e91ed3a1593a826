/** Handlers of the operations that move agents between nodes. */
import type { AgentMover } from '../../capabilities/moving/agent-mover.ts';
import { SvcError } from '../../foundation/errors.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { movingOperations } from '../moving.ts';
import type { CallContext, Handlers } from '../operation.ts';

export interface MovingHandlerDependencies {
  readonly mover: Pick<AgentMover, 'export' | 'import'>;
}

/** @throws SvcError `local_only`, even if a surface did not check it */
function mustBeLocal({ origin }: CallContext): void {
  if (origin !== 'local') throw new SvcError('local_only');
}

export function movingHandlers({ mover }: MovingHandlerDependencies): Handlers<typeof movingOperations> {
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
        origins: (document.origins?.length ?? 0) - portsTaken.origins.length,
        ports_taken: [...portsTaken.tunnels, ...portsTaken.origins].sort((a, b) => a - b),
        notes: document.notes.waiting.length,
        conversations: document.chat.filter(({ state }) => state === 'friends').length,
        rooms: document.rooms.joined.length,
      };
    },
  };
}
