/** How a page gets its token: from a one-time code in the address. */
import { requestWith } from './api.ts';
import { beginSession } from './session.ts';

/**
 * Exchanges a code or the API token for a session token. If that fails, an earlier session of this tab remains.
 *
 * @throws Failure
 */
export async function openSession(by: { readonly code: string } | { readonly api_token: string }): Promise<void> {
  // An expired token would make the daemon reject the request for a new one.
  const response = await requestWith({}, '/panel/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(by),
  });
  const answer: { readonly token: string } = await response.json();
  beginSession(answer.token);
}

/** Uses the code in the address, if any, and removes it from the address. */
export async function enter(): Promise<void> {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, '', `${location.pathname}#/`);
  await openSession({ code }).catch(() => {});
}
