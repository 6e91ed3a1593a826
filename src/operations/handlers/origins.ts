/** Handlers of the local address operations. */
import type { OriginInfo, Origins } from '../../capabilities/origins/origins.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { Handlers } from '../operation.ts';
import type { originOperations } from '../origins.ts';
import type { ActingAgent } from './local-agents.ts';

export interface OriginHandlerDependencies extends ActingAgent {
  readonly origins: Origins;
}

function view(o: OriginInfo) {
  return {
    id: o.id,
    local_aid: o.localAid,
    remote_aid: o.remoteAid,
    url: o.url,
    is_served: o.isServed,
    opened_at: isoTime(o.openedAt),
    active_conns: o.connections,
    served: o.served,
    last_error: o.lastError === null ? undefined : { ...o.lastError, at: isoTime(o.lastError.at) },
  };
}

export function originHandlers({ origins, localAid }: OriginHandlerDependencies): Handlers<typeof originOperations> {
  return {
    originOpen: async ({ aid, local_aid, access_token: accessToken, local_port: port = 0 }, context) => {
      const request = { localAid: localAid(local_aid), remoteAid: aid, accessToken, port };
      const { origin, reused } = await origins.open(request);
      if (reused) context.setStatus(200);
      return view(origin);
    },
    originList: () => ({ origins: origins.list().map(view) }),
    originClose: async ({ id }) => {
      await origins.close(id);
      return { ok: true };
    },
  };
}
