/** The tunnels that closed last, and why. */
import { isoTime } from '../../foundation/clock.ts';
import { timeText } from '../../foundation/display-text.ts';
import { type CloseReason, MAX_CLOSED_TUNNELS } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { ClosedTunnel } from './types.ts';

const WHY: Readonly<Record<CloseReason, (end: ClosedTunnel) => string>> = {
  idle: ({ idleTimeoutSec }) =>
    `nothing connected to it for ${timeText(idleTimeoutSec * 1000)}, its idle_timeout_sec; open it again, with -1 to keep it`,
  asked: () => 'on request',
  agent_gone: () => 'its agent was unregistered here',
  port_in_use: () => 'its port was taken when the daemon started again; open it again when the port is free',
};

export class ClosedTunnels {
  /** The newest is last. */
  readonly #ends = new Map<string, ClosedTunnel>();

  add(end: ClosedTunnel): void {
    this.#ends.set(end.id, end);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MAX_CLOSED_TUNNELS && oldest !== undefined) this.#ends.delete(oldest);
  }

  /** Newest first. */
  list(): ClosedTunnel[] {
    return [...this.#ends.values()].reverse();
  }

  /** The error for an unknown tunnel. It gives the reason if the tunnel closed recently. */
  missing(id: string): SvcError {
    const end = this.#ends.get(id);
    if (end === undefined)
      return new SvcError('not_found', { thing: 'tunnel', message: 'This tunnel does not exist.' });
    const closed_at = isoTime(end.closedAt);
    return new SvcError('not_found', {
      thing: 'tunnel',
      message: `This tunnel closed at ${closed_at}: ${WHY[end.reason](end)}.`,
      details: { closed_at, reason: end.reason, idle_timeout_sec: end.idleTimeoutSec },
    });
  }
}
