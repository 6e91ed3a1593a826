/** Service names. The panel checks them too, so this file has no dependencies on Node. */
import { MAX_SERVICE_NAME_CHARS } from '../records/types.ts';

/** Pattern of a service name. The length is limited separately. */
export const SERVICE_NAME_FORM = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

/** True for a well-formed service name such as `lang.translate`. */
export function isServiceName(name: string): boolean {
  return name.length <= MAX_SERVICE_NAME_CHARS && SERVICE_NAME_FORM.test(name);
}
