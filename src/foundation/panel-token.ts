/** The format of panel session tokens, which distinguishes them from the API token. */

/** Random bytes of a session token. */
export const PANEL_TOKEN_BYTES = 32;
export const PANEL_TOKEN_PREFIX = 'svcp_';
const FORM = /^svcp_[\w-]{43}$/;

/** True if a text has the form of a panel session token, expired or not. */
export function isPanelToken(text: string): boolean {
  return FORM.test(text);
}
