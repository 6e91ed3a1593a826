/** The names of services. Pure: the panel checks them too. */
import { MAX_SERVICE_NAME_CHARS } from '../records/types.ts';

/** The form of a service name, besides its length. */
export const SERVICE_NAME_FORM = /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/;

/** True for a well-formed service name such as `lang.translate`. */
export function isServiceName(name: string): boolean {
  return name.length <= MAX_SERVICE_NAME_CHARS && SERVICE_NAME_FORM.test(name);
}
