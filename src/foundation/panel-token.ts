/** The form of the tokens of the panel's sessions, which tells them from an API token. */

/** Random bytes of a session's token. */
export const PANEL_TOKEN_BYTES = 32;
export const PANEL_TOKEN_PREFIX = 'svcp_';
const FORM = /^svcp_[\w-]{43}$/;

/** True for what can only be the token of a session, of one that has ended too. */
export function isPanelToken(text: string): boolean {
  return FORM.test(text);
}
