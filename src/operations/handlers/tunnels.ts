/** Handlers of the tunnel operations. */
import type { TunnelInbound } from '../../capabilities/tunnels/inbound.ts';
import type { TunnelService } from '../../capabilities/tunnels/tunnel-service.ts';
import type { ClosedTunnel, TunnelInfo } from '../../capabilities/tunnels/types.ts';
import { isoTime } from '../../foundation/clock.ts';
import { isRelayed } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Handlers, InputOf } from '../operation.ts';
import { listPage } from '../paging.ts';
import type { tunnelOperations } from '../tunnels.ts';
import type { ActingAgent } from './local-agents.ts';

export interface TunnelHandlerDependencies extends ActingAgent {
  readonly tunnels: Pick<TunnelService, 'connect' | 'open' | 'list' | 'closed' | 'get' | 'close' | 'reset'>;
  readonly inbound: Pick<TunnelInbound, 'session'>;
}

function view(t: TunnelInfo) {
  return {
    id: t.id,
    local_aid: t.localAid,
    remote_aid: t.remoteAid,
    listen: t.listen,
    is_relayed: isRelayed(t.path),
    path: t.path,
    remote_addr: t.remoteAddr,
    rtt_ms: t.rttMs,
    opened_at: isoTime(t.openedAt),
    last_activity_at: isoTime(t.lastActivityAt),
    active_conns: t.activeConns,
    bytes_up: t.bytesUp,
    bytes_down: t.bytesDown,
    idle_timeout_sec: t.idleTimeoutSec,
    no_path:
      t.noPath === null
        ? undefined
        : {
            since: isoTime(t.noPath.since),
            held_until: isoTime(t.noPath.heldUntil),
            connections: t.noPath.connections,
          },
    last_error: t.lastError === null ? undefined : { ...t.lastError, at: isoTime(t.lastError.at) },
  };
}

function closedView(t: ClosedTunnel) {
  return {
    id: t.id,
    local_aid: t.localAid,
    remote_aid: t.remoteAid,
    listen: t.listen,
    opened_at: isoTime(t.openedAt),
    closed_at: isoTime(t.closedAt),
    reason: t.reason,
    bytes_up: t.bytesUp,
    bytes_down: t.bytesDown,
    idle_timeout_sec: t.idleTimeoutSec,
    last_error: view(t).last_error,
  };
}

function askOf({ note = '', wait_s: waitS = 0 }: Pick<InputOf<typeof tunnelOperations.connect>, 'note' | 'wait_s'>) {
  return { note, waitS };
}

export function tunnelHandlers({
  tunnels,
  inbound,
  localAid,
}: TunnelHandlerDependencies): Handlers<typeof tunnelOperations> {
  const requestOf = (input: InputOf<typeof tunnelOperations.connect>) => ({
    localAid: localAid(input.local_aid),
    remoteAid: input.aid,
    accessToken: input.access_token,
    disableRelay: input.disable_relay ?? false,
  });
  return {
    connect: async (input) => ({ tunnel: await tunnels.connect(requestOf(input), askOf(input)) }),
    tunnelOpen: async ({ local_port: localPort = 0, idle_timeout_sec: idleTimeoutSec, ...input }, context) => {
      const { tunnel, reused } = await tunnels.open({ ...requestOf(input), localPort, idleTimeoutSec }, askOf(input));
      if (reused) context.setStatus(200);
      return view(tunnel);
    },
    tunnelList: (query) => {
      const sortable = tunnels.list().map((t) => ({ sortKey: `${isoTime(t.openedAt)} ${t.id}`, entry: t }));
      const { entries, next_cursor } = listPage(sortable, query);
      const closed = query.cursor === undefined ? tunnels.closed() : [];
      return { tunnels: entries.map(view), closed: closed.map(closedView), next_cursor };
    },
    tunnelGet: ({ id }) => view(tunnels.get(id)),
    tunnelClose: async ({ id }) => {
      await tunnels.close(id);
      return { ok: true };
    },
    tunnelReset: ({ id }) => {
      tunnels.reset(id);
      return { ok: true };
    },
    sessionGet: ({ port }) => {
      const session = inbound.session(port);
      if (session === null)
        throw new SvcError('not_found', {
          message: 'The daemon has no connection to a bound service with this source port.',
        });
      return { caller_aid: session.callerAid, local_aid: session.localAid, since: isoTime(session.since) };
    },
  };
}
