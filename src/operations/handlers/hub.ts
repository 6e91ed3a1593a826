/** Handlers of the operations of the MCP hub. */
import type { Hub } from '../../capabilities/hub/hub.ts';
import { HUB_RESULTS_DEFAULT } from '../../foundation/domain/hub.ts';
import type { hubOperations } from '../hub.ts';
import type { Handlers } from '../operation.ts';
import { listPage, numberCursor } from '../paging.ts';
import type { ActingAgent } from './local-agents.ts';

export interface HubHandlerDependencies extends ActingAgent {
  readonly hub: Pick<Hub, 'sources' | 'add' | 'refresh' | 'remove' | 'changes' | 'decide' | 'find' | 'describe'>;
}

export function hubHandlers({ hub, localAid }: HubHandlerDependencies): Handlers<typeof hubOperations> {
  return {
    hubSources: ({ local_aid }) => ({ sources: hub.sources(localAid(local_aid)) }),
    hubAdd: ({ aid, local_aid }, { signal }) => hub.add(localAid(local_aid), aid, signal),
    hubRefresh: async ({ aid, local_aid }, { signal }) => ({
      sources: await hub.refresh(localAid(local_aid), aid, signal),
    }),
    hubRemove: async ({ aid, local_aid }) => {
      await hub.remove(localAid(local_aid), aid);
      return { ok: true };
    },
    hubChanges: ({ local_aid, ...page }) => {
      const listed = hub
        .changes(localAid(local_aid))
        .map((entry) => ({ sortKey: `${numberCursor(Date.parse(entry.at))} ${entry.id}`, entry }));
      const { entries: changes, next_cursor } = listPage(listed, page);
      return { changes, next_cursor };
    },
    hubAccept: ({ id, local_aid }) => hub.decide(localAid(local_aid), id, true),
    hubRefuse: ({ id, local_aid }) => hub.decide(localAid(local_aid), id, false),
    hubFind: ({ query, limit = HUB_RESULTS_DEFAULT, from = 'known', local_aid }, { signal }) =>
      hub.find(localAid(local_aid), { query, limit, from }, signal),
    hubDescribe: ({ tool, local_aid }) => hub.describe(localAid(local_aid), tool),
  };
}
