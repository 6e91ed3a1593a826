/** Texts of failures in the language of the user. */
import type { Failure } from './failure.ts';
import { isKey, t } from './i18n.ts';

/** The text for the error code, or the message of the daemon if there is none. */
export function failureText({ code, message }: Failure): string {
  const key = `error.${code}`;
  return isKey(key) ? t(key) : message === '' ? code : message;
}
