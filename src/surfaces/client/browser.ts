/** `svcd/client` in a browser. */
import { Daemon } from './daemon.ts';
import type { DaemonOptions } from './place.ts';

export { SvcError } from '../../foundation/errors.ts';
export type { Daemon } from './daemon.ts';

/** A daemon at an address. @throws SvcError `invalid_request` where that is not an http or https URL */
export function connect(options: DaemonOptions): Daemon {
  return new Daemon(options);
}
