/** The web panel: the page, its files, and who is logged in to it. */
import { Type } from 'typebox';
import { declare, declareStreams } from './declare.ts';
import { closed, exactlyOne, Id, Ok, Timestamp } from './schemas.ts';

/** Longest name of a file of the panel, characters. */
const MAX_PANEL_FILE_NAME_CHARS = 128;

/** Longest text that may be tried as a code or as the API token, characters. */
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
      summary: 'The web panel. It holds no data.',
      path: '/',
      params: closed({}),
      // A link may carry what it likes: nothing looks at it.
      query: Type.Object({}),
      produces: 'text/html',
    },

    panelFile: {
      summary: 'What the page of the panel loads.',
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
    summary: 'Makes a code that opens the panel once, within a minute.',
    route: 'POST /panel/login',
    output: Type.Object({
      code: Type.String(),
      url: Type.String({
        description: 'Opens the panel with the code: it stands behind the `#`, so no server sees it.',
      }),
      expires_at: Timestamp,
    }),
    permission: 'local_only',
    errors: ['access_denied'],
  },

  panelSessionBegin: {
    summary: 'Begins a session of the panel, for one of: a code, the API token.',
    route: 'POST /panel/session',
    body: SessionBody,
    shownBody: exactlyOne(SessionBody, ['code', 'api_token']),
    output: Type.Object({
      id: Id,
      token: Type.String({ description: 'Goes where the API token goes: `Authorization: Bearer`.' }),
      expires_at: Timestamp,
    }),
    permission: 'open',
    errors: ['access_denied'],
  },

  panelSessions: {
    summary: 'Lists the sessions of the panel, the newest first.',
    route: 'GET /panel/sessions',
    output: Type.Object({
      sessions: Type.Array(
        Type.Object({
          id: Id,
          created_at: Timestamp,
          last_seen_at: Timestamp,
          expires_at: Timestamp,
          current: Type.Boolean({ description: 'The one that asks.' }),
        }),
      ),
    }),
  },

  panelSessionEnd: {
    summary: 'Ends a session of the panel, and the streams that it has open.',
    route: 'DELETE /panel/sessions/{id}',
    params: closed({ id: Id }),
    output: Ok,
    errors: ['not_found'],
  },
});
