/** How a page gets its token: by a code that the address carries once. */
import { request } from './api.ts';
import { keepToken } from './session.ts';

/** Exchanges a code, or the API token itself, for the token of a session. */
export async function openSession(by: { readonly code: string } | { readonly api_token: string }): Promise<void> {
  // A token that has ended would be refused before the new one is asked for.
  keepToken('');
  const response = await request('/panel/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(by),
  });
  const answer: { readonly token: string } = await response.json();
  keepToken(answer.token);
}

/** Uses the code in the address where there is one, of which no trace stays. */
export async function enter(): Promise<void> {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, '', `${location.pathname}#/`);
  await openSession({ code }).catch(() => {});
}
