/** The two ends of the line between the service's supervisor and the daemon that it runs. */
import type { EventEmitter } from 'node:events';
import type { Supervisor } from '../../capabilities/update/types.ts';
import { memberOf } from '../../foundation/json.ts';

/** Set by the supervisor for the daemon that it runs. */
export const MANAGED_VARIABLE = 'SVCD_MANAGED';

/** What the daemon asks its supervisor for. */
export interface SwitchMessage {
  readonly type: 'switch';
  readonly version: string;
}

/** What a supervisor tells the daemon where there are no signals (Windows). */
export interface StopMessage {
  readonly type: 'stop';
}

/** What the daemon says once it serves. */
export interface ReadyMessage {
  readonly type: 'ready';
  readonly api_addr: string;
}

export function isSwitch(message: unknown): message is SwitchMessage {
  return memberOf(message, 'type') === 'switch' && typeof memberOf(message, 'version') === 'string';
}

export function isStop(message: unknown): message is StopMessage {
  return memberOf(message, 'type') === 'stop';
}

export function isReady(message: unknown): message is ReadyMessage {
  return memberOf(message, 'type') === 'ready' && typeof memberOf(message, 'api_addr') === 'string';
}

/** The supervisor that runs this process; null where somebody else started it. */
export function supervisorOf(self: Pick<NodeJS.Process, 'env' | 'send'>): Supervisor | null {
  if (self.env[MANAGED_VARIABLE] !== '1' || self.send === undefined) return null;
  return {
    switchTo: (version) => void self.send?.({ type: 'switch', version } satisfies SwitchMessage),
  };
}

/** Calls back when the supervisor asks this process to stop, or is gone. */
export function onSupervisorStop(self: EventEmitter, stop: () => void): void {
  self.on('message', (message: unknown) => {
    if (isStop(message)) stop();
  });
  self.once('disconnect', stop);
}
