/** The web panel: its page, its files and its sessions. */
import { Type } from 'typebox';
import { declare, declareStreams } from './declare.ts';
import { closed, exactlyOne, Id, Ok, Timestamp } from './schemas.ts';

/** Longest name of a panel file, characters. */
const MAX_PANEL_FILE_NAME_CHARS = 128;

/** Longest code or API token in a login attempt, characters. */
const MAX_SECRET_CHARS = 1024;

const COMMON = { tag: 'Panel' };

const Secret = Type.String({ minLength: 1, maxLength: MAX_SECRET_CHARS });

export const panelStreams = declareStreams(
  {
    ...COMMON,
    methods: ['GET', 'HEAD'],
    permission: 'open',
    errors: [],
  } as const,
  {
    panel: {
      summary: 'The web panel. The page itself contains no data.',
      path: '/',
      params: closed({}),
      // A link may have any query, which is ignored.
      query: Type.Object({}),
      produces: 'text/html',
    },

    panelFile: {
      summary: 'The files of the panel.',
      path: '/panel/{file}',
      params: closed({ file: Type.String({ maxLength: MAX_PANEL_FILE_NAME_CHARS }) }),
      query: closed({}),
      produces: '*/*',
      errors: ['not_found'],
    },
  },
);

const SessionBody = closed({ code: Type.Optional(Secret), api_token: Type.Optional(Secret) });

export const panelOperations = declare(COMMON, {
  panelLogin: {
    summary: 'Creates a code that opens the panel once, within one minute.',
    route: 'POST /panel/login',
    output: Type.Object({
      code: Type.String(),
      url: Type.String({
        description: 'Address that opens the panel. The code follows `#`, so no server sees it.',
      }),
      expires_at: Timestamp,
    }),
    permission: 'local_only',
    errors: ['access_denied'],
  },

  panelSessionBegin: {
    summary: 'Starts a panel session with a code or the API token.',
    route: 'POST /panel/session',
    body: SessionBody,
    shownBody: exactlyOne(SessionBody, ['code', 'api_token']),
    output: Type.Object({
      id: Id,
      token: Type.String({ description: 'Use it as the API token: `Authorization: Bearer`.' }),
      expires_at: Timestamp,
    }),
    permission: 'open',
    errors: ['access_denied'],
  },

  panelSessions: {
    summary: 'Lists the panel sessions, newest first.',
    route: 'GET /panel/sessions',
    output: Type.Object({
      sessions: Type.Array(
        Type.Object({
          id: Id,
          created_at: Timestamp,
          last_seen_at: Timestamp,
          expires_at: Timestamp,
          current: Type.Boolean({ description: 'The session of this request.' }),
        }),
      ),
    }),
  },

  panelSessionEnd: {
    summary: 'Ends a panel session and its open streams.',
    route: 'DELETE /panel/sessions/{id}',
    params: closed({ id: Id }),
    output: Ok,
    errors: ['not_found'],
  },
});
