/** The two ends of the line between the service's supervisor and the daemon that it runs. */
import type { EventEmitter } from 'node:events';
import type { Supervisor } from '../../capabilities/update/types.ts';
import { memberOf } from '../../foundation/json.ts';

/** Set by the supervisor for the daemon that it runs. */
export const MANAGED_VARIABLE = 'SVCD_MANAGED';

/** What a supervisor tells the daemon where there are no signals (Windows). */
export const STOP_MESSAGE = { type: 'stop' };

/** What the daemon asks its supervisor for. */
export function isSwitch(message: unknown): message is { readonly version: string } {
  return memberOf(message, 'type') === 'switch' && typeof memberOf(message, 'version') === 'string';
}

/** The daemon asks to be started anew as it is. */
export function isRestart(message: unknown): boolean {
  return memberOf(message, 'type') === 'restart';
}

export function isStop(message: unknown): boolean {
  return memberOf(message, 'type') === STOP_MESSAGE.type;
}

/** What the daemon says once it serves. */
export function isReady(message: unknown): message is { readonly api_addr: string } {
  return memberOf(message, 'type') === 'ready' && typeof memberOf(message, 'api_addr') === 'string';
}

/** The supervisor that runs this process; null where somebody else started it. */
export function supervisorOf(self: Pick<NodeJS.Process, 'env' | 'send'>): Supervisor | null {
  if (self.env[MANAGED_VARIABLE] !== '1' || self.send === undefined) return null;
  return {
    // A supervisor that is gone has this process stopped, see below.
    switchTo: (version) => void self.send?.({ type: 'switch', version }, () => {}),
    restart: () => void self.send?.({ type: 'restart' }, () => {}),
  };
}

/** Calls back when the supervisor asks this process to stop, or is gone. */
export function onSupervisorStop(self: EventEmitter, stop: () => void): void {
  self.on('message', (message: unknown) => {
    if (isStop(message)) stop();
  });
  self.once('disconnect', stop);
}
