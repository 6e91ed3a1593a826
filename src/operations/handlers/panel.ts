/** Handlers of the panel sessions. */
import type { PanelLogins } from '../../capabilities/panel/panel-logins.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Handlers } from '../operation.ts';
import type { panelOperations } from '../panel.ts';

export interface PanelHandlerDependencies {
  readonly logins: PanelLogins;
  /** Creates a code, and the address that opens the panel with it. */
  readonly login: () => { readonly code: string; readonly url: string; readonly expiresAt: number };
  /** True if the text is the API token. False without a token. */
  readonly isApiToken: (text: string) => boolean;
}

/** A panel session must not create others: a stolen session would outlive its end. */
function refuseSession(session: string | null | undefined): void {
  if (typeof session === 'string')
    throw new SvcError('access_denied', {
      message: 'A panel session cannot create other sessions. Use the API token.',
    });
}

export function panelHandlers({
  logins,
  login,
  isApiToken,
}: PanelHandlerDependencies): Handlers<typeof panelOperations> {
  return {
    panelLogin: (_input, { session }) => {
      refuseSession(session);
      const { code, url, expiresAt } = login();
      return { code, url, expires_at: isoTime(expiresAt) };
    },
    panelSessionBegin: ({ code, api_token }, { trySecret }) => {
      if ((code === undefined) === (api_token === undefined))
        throw new SvcError('invalid_request', { message: 'Send either code or api_token.', details: { in: 'body' } });
      if (trySecret === undefined)
        throw new SvcError('access_denied', {
          message: 'The panel of a remote node has its own address. Log in there.',
        });
      // A wrong code costs no attempts: codes have too many bits to guess, and any page can lead a browser to a wrong
      // one.
      if (code === undefined) trySecret(() => isApiToken(api_token ?? ''));
      else if (!logins.redeem(code))
        throw new SvcError('unauthorized', {
          message: 'The code is wrong or was already used. Get a new one with "svc panel".',
        });
      const { id, token, expiresAt } = logins.begin();
      return { id, token, expires_at: isoTime(expiresAt) };
    },
    panelSessions: (_input, { session }) => ({
      sessions: logins.list().map(({ id, createdAt, lastSeenAt, expiresAt }) => ({
        id,
        created_at: isoTime(createdAt),
        last_seen_at: isoTime(lastSeenAt),
        expires_at: isoTime(expiresAt),
        current: id === session,
      })),
    }),
    panelSessionEnd: ({ id }) => {
      logins.end(id);
      return { ok: true };
    },
  };
}
