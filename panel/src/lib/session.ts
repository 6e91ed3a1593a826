/**
 * The session token of this tab. It is in `sessionStorage`, which belongs to one origin and one tab. Other tabs of the
 * same origin can ask for it over a channel.
 */
import { tabStorage } from './storage.ts';
import { tabChannel } from './tab-channel.ts';

const KEY = 'svcd-session';
/** How long a new tab waits for the token of another tab, milliseconds. */
const ASK_MS = 150;

let token = tabStorage.get(KEY);
const channel = tabChannel('svcd-session');
const tell = channel.postMessage.bind(channel);

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (data === 'ask' && token !== '') tell({ token });
});

/** Stores a token. An empty one deletes it. */
export function keepToken(given: string): void {
  token = given;
  tabStorage.set(KEY, given);
}

/** The header with the token. */
export function tokenHeaders(): Record<string, string> {
  return token === '' ? {} : { authorization: `Bearer ${token}` };
}

/** Requests the token of another tab. */
export function askTabs(): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (found: boolean): void => {
      clearTimeout(timer);
      channel.removeEventListener('message', hear);
      resolve(found);
    };
    const hear = ({ data }: MessageEvent<unknown>): void => {
      if (typeof data !== 'object' || data === null || !('token' in data) || typeof data.token !== 'string') return;
      keepToken(data.token);
      settle(true);
    };
    const timer = setTimeout(settle, ASK_MS, false);
    channel.addEventListener('message', hear);
    tell('ask');
  });
}
