/**
 * The session token of this tab. It is in `sessionStorage`, which belongs to one origin and one tab. The tabs of an
 * origin share tokens over a channel: a tab without a token requests one, and a new login is announced to all.
 */
import { tabStorage } from './storage.ts';
import { tabChannel } from './tab-channel.ts';

const KEY = 'svcd-session';

let token = tabStorage.get(KEY);
/** Tokens that the daemon rejected. Another tab may still send them. */
const rejected = new Set<string>();
const followers = new Set<() => void>();
const channel = tabChannel('svcd-session');
const tell = channel.postMessage.bind(channel);

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (data === 'ask' && token !== '') tell({ token });
  if (token !== '' || typeof data !== 'object' || data === null || !('token' in data)) return;
  if (typeof data.token !== 'string' || rejected.has(data.token)) return;
  takeToken(data.token);
});

function keepToken(given: string): void {
  token = given;
  tabStorage.set(KEY, given);
}

function takeToken(given: string): void {
  keepToken(given);
  for (const follower of followers) follower();
}

/** Keeps the token of a new login, also in the tabs that have none. */
export function beginSession(given: string): void {
  tell({ token: given });
  takeToken(given);
}

/** The token of this tab. Empty if there is none. */
export function currentToken(): string {
  return token;
}

/** Forgets a token that the daemon rejected, unless the tab has another one meanwhile. */
export function dropToken(sent: string): void {
  if (sent === '') return;
  rejected.add(sent);
  if (token === sent) keepToken('');
}

/** The header with the token. */
export function tokenHeaders(): Record<string, string> {
  return token === '' ? {} : { authorization: `Bearer ${token}` };
}

/** Requests the token of the other tabs, see `onSession`. */
export function askTabs(): void {
  tell('ask');
}

/** Calls back when this tab gets a token, from a login here or in another tab. The returned function stops it. */
export function onSession(begun: () => void): () => void {
  followers.add(begun);
  return () => followers.delete(begun);
}
