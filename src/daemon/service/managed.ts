/** Messages between the supervisor of the service and its daemon. */
import type { EventEmitter } from 'node:events';
import type { Supervisor } from '../../capabilities/update/types.ts';
import { memberOf } from '../../foundation/json.ts';

/** Set by the supervisor in the environment of the daemon. */
export const MANAGED_VARIABLE = 'SVCD_MANAGED';

/** Message that stops the daemon on Windows, which has no signals. */
export const STOP_MESSAGE = { type: 'stop' };

/** The daemon requests another version. */
export function isSwitch(message: unknown): message is { readonly version: string } {
  return memberOf(message, 'type') === 'switch' && typeof memberOf(message, 'version') === 'string';
}

/** The daemon requests a restart of the same version. */
export function isRestart(message: unknown): boolean {
  return memberOf(message, 'type') === 'restart';
}

export function isStop(message: unknown): boolean {
  return memberOf(message, 'type') === STOP_MESSAGE.type;
}

/** The daemon is ready. */
export function isReady(message: unknown): message is { readonly api_addr: string } {
  return memberOf(message, 'type') === 'ready' && typeof memberOf(message, 'api_addr') === 'string';
}

/** The supervisor of this process; null if there is none. */
export function supervisorOf(self: Pick<NodeJS.Process, 'env' | 'send'>): Supervisor | null {
  if (self.env[MANAGED_VARIABLE] !== '1' || self.send === undefined) return null;
  return {
    // If the supervisor has exited, this process stops; see below.
    switchTo: (version) => void self.send?.({ type: 'switch', version }, () => {}),
    restart: () => void self.send?.({ type: 'restart' }, () => {}),
  };
}

/** Calls back when the supervisor requests a stop or has exited. */
export function onSupervisorStop(self: EventEmitter, stop: () => void): void {
  self.on('message', (message: unknown) => {
    if (isStop(message)) stop();
  });
  self.once('disconnect', stop);
}
