/** Failures in the words of the user. */
import type { Failure } from './failure.ts';
import { isKey, t } from './i18n.ts';

/** A sentence for a failure: that of its code where there is one, else the daemon's own. */
export function failureText({ code, message }: Failure): string {
  const key = `error.${code}`;
  return isKey(key) ? t(key) : message === '' ? code : message;
}
