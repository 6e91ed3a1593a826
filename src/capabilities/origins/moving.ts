/** Export and import of an agent's local addresses, so that programs on the new node keep using the same URLs. */
import type { Clock } from '../../foundation/clock.ts';
import { MAX_ORIGINS } from '../../foundation/domain/services.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { OriginsPart } from '../../foundation/moving/agent-document.ts';
import { aidAt, checkDistinct } from '../../foundation/moving/document-fields.ts';
import type { OriginStore, SavedOrigin } from '../../foundation/store/origins.ts';

export function exportOrigins(memory: OriginStore, aid: Aid): OriginsPart {
  return memory
    .list()
    .filter(({ localAid }) => localAid === aid)
    .map(({ remoteAid, port, accessToken }) => ({
      remote_aid: remoteAid,
      local_port: port,
      ...(accessToken === undefined ? {} : { access_token: accessToken }),
    }));
}

export interface OriginsImport {
  readonly memory: OriginStore;
  readonly clock: Clock;
  /** Ports of the saved tunnels of this node. */
  readonly tunnelPorts: () => readonly number[];
}

/**
 * Validates imported local addresses. An address is skipped if a local address or tunnel of this node has its port, or
 * if this node has reached its limit.
 * @returns a function that stores them and returns the skipped ports
 * @throws SvcError `bad_file`
 */
export function importOrigins(
  { memory, clock, tunnelPorts }: OriginsImport,
  aid: Aid,
  part: OriginsPart,
): () => number[] {
  const now = clock.now();
  const origins = part.map(
    (one, i): SavedOrigin => ({
      id: newId(),
      localAid: aid,
      remoteAid: aidAt(`/origins/${i}/remote_aid`, one.remote_aid),
      accessToken: one.access_token,
      port: one.local_port,
      openedAt: now,
    }),
  );
  const ports = origins.map(({ port }) => port);
  checkDistinct('/origins', ports);
  checkDistinct(
    '/origins',
    origins.map(({ remoteAid }) => remoteAid),
  );
  return () => {
    const here = memory.list().map(({ port }) => port);
    const taken = new Set([...here, ...tunnelPorts()]);
    const free = origins.filter(({ port }) => !taken.has(port)).slice(0, Math.max(0, MAX_ORIGINS - here.length));
    for (const origin of free) memory.save(origin);
    return ports.filter((port) => !free.some((origin) => origin.port === port));
  };
}
