/** `svcd/client` in a browser. */

import { SvcDaemon } from './daemon.ts';
import type { DaemonOptions } from './place.ts';

export { SvcError } from '../../foundation/errors.ts';
export type { SvcDaemon } from './daemon.ts';

/** A daemon at an address. @throws SvcError `invalid_request` if it is not an HTTP URL */
function connectTo(options: DaemonOptions): SvcDaemon {
  return new SvcDaemon(options);
}

export { connectTo as connect };
