/** How a page gets its token: from a one-time code in the address. */
import { request } from './api.ts';
import { keepToken } from './session.ts';

/** Exchanges a code or the API token for a session token. */
export async function openSession(by: { readonly code: string } | { readonly api_token: string }): Promise<void> {
  // An expired token would make the daemon reject the request for a new one.
  keepToken('');
  const response = await request('/panel/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(by),
  });
  const answer: { readonly token: string } = await response.json();
  keepToken(answer.token);
}

/** Uses the code in the address, if any, and removes it from the address. */
export async function enter(): Promise<void> {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, '', `${location.pathname}#/`);
  await openSession({ code }).catch(() => {});
}
