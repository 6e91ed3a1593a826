/** Polls state that has no change notifications, and emits events for its changes. */
import { type Clock, isoTime } from '../../foundation/clock.ts';
import type { CloseReason } from '../../foundation/domain/tunnels.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import type { NodeEventPayloads } from '../../foundation/node-events.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodeEvents } from './node-events.ts';

/** Polling interval, milliseconds. */
export const NODE_WATCH_MS = 2_000;

export interface WatchedTunnel {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  readonly listen: string;
  readonly noPath: { readonly since: number; readonly heldUntil: number; readonly connections: number } | null;
  readonly lastError: { readonly at: number } | null;
}

export interface NodeWatchDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly events: Pick<NodeEvents, 'emit'>;
  readonly network: () => NodeEventPayloads['network'];
  readonly update: () => NodeEventPayloads['update'];
  readonly tunnels: {
    list(): readonly WatchedTunnel[];
    closed(): readonly (WatchedTunnel & { readonly reason: CloseReason })[];
  };
}

function tunnelData({ id, remoteAid, listen }: WatchedTunnel): NodeEventPayloads['tunnel.opened'] {
  return { id, remote_aid: remoteAid, listen };
}

export class NodeWatch implements Component {
  readonly #deps: NodeWatchDependencies;
  #ready = false;
  #update: string;
  #tunnels = new Map<string, WatchedTunnel>();
  #looking: RepeatingTask | null = null;

  constructor(dependencies: NodeWatchDependencies) {
    this.#deps = dependencies;
    this.#update = dependencies.update().state;
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const onError = (error: unknown): void => log.error({ error }, 'the state of the node could not be read');
    this.#looking = every(clock, { periodMs: NODE_WATCH_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#looking?.stop();
  }

  #look(): void {
    const { events, network, update } = this.#deps;
    const reading = network();
    if (reading.ready !== this.#ready) events.emit('network', reading);
    this.#ready = reading.ready;
    const now = update();
    // The result is not available until the check has finished.
    if (now.state !== 'checking') {
      if (now.state !== this.#update) events.emit('update', now);
      this.#update = now.state;
    }
    this.#lookAtTunnels();
  }

  #lookAtTunnels(): void {
    const { events, tunnels } = this.#deps;
    const standing = new Map(tunnels.list().map((one) => [one.id, one]));
    for (const [id, one] of standing) {
      const before = this.#tunnels.get(id);
      if (before === undefined) events.emit('tunnel.opened', tunnelData(one), one.localAid);
      this.#lookAtPath(one, before?.noPath ?? null);
    }
    const gone = [...this.#tunnels.values()].filter(({ id }) => !standing.has(id));
    const ends = gone.length === 0 ? [] : tunnels.closed();
    for (const one of gone) {
      const reason = ends.find(({ id }) => id === one.id)?.reason ?? null;
      events.emit('tunnel.closed', { ...tunnelData(one), reason }, one.localAid);
    }
    this.#tunnels = standing;
  }

  #lookAtPath(tunnel: WatchedTunnel, before: WatchedTunnel['noPath']): void {
    const { events } = this.#deps;
    const { noPath, lastError, localAid } = tunnel;
    if (noPath !== null && before === null) {
      const { since, heldUntil, connections } = noPath;
      const data = { since: isoTime(since), held_until: isoTime(heldUntil), connections };
      events.emit('tunnel.no_path', { ...tunnelData(tunnel), ...data }, localAid);
    } else if (noPath === null && before !== null) {
      const state = lastError !== null && lastError.at >= before.since ? 'given_up' : 'back';
      events.emit('tunnel.path', { ...tunnelData(tunnel), state, since: isoTime(before.since) }, localAid);
    }
  }
}
