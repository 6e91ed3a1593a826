/** The tunnels of an agent with a fixed port, for its move to another node. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { TunnelsPart } from '../../foundation/moving/agent-document.ts';
import { aidAt, checkDistinct } from '../../foundation/moving/document-fields.ts';
import type { TunnelMemory } from './tunnel-service.ts';

export function exportTunnels(memory: TunnelMemory, aid: Aid): TunnelsPart {
  return memory
    .list()
    .filter(({ localAid }) => localAid === aid)
    .map(({ remoteAid, localPort, idleTimeoutSec, disableRelay, accessToken }) => ({
      remote_aid: remoteAid,
      local_port: localPort,
      idle_timeout_sec: idleTimeoutSec,
      disable_relay: disableRelay,
      ...(accessToken === undefined ? {} : { access_token: accessToken }),
    }));
}

/**
 * Checks imported tunnels. A tunnel on the port of an existing tunnel is skipped.
 * @returns saves them, and returns the skipped ports
 * @throws SvcError `bad_file`
 */
export function importTunnels(memory: TunnelMemory, aid: Aid, part: TunnelsPart): () => number[] {
  const tunnels = part.map((one, i) => ({
    id: newId(),
    localAid: aid,
    remoteAid: aidAt(`/tunnels/${i}/remote_aid`, one.remote_aid),
    accessToken: one.access_token,
    localPort: one.local_port,
    idleTimeoutSec: one.idle_timeout_sec,
    disableRelay: one.disable_relay,
  }));
  const ports = tunnels.map(({ localPort }) => localPort);
  checkDistinct('/tunnels', ports);
  return () => {
    const taken = new Set(memory.list().map(({ localPort }) => localPort));
    for (const tunnel of tunnels) if (!taken.has(tunnel.localPort)) memory.save(tunnel);
    return ports.filter((port) => taken.has(port));
  };
}
