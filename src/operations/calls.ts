/** Calls: HTTP requests to remote agents. */
import { Type } from 'typebox';
import { declare } from './operation.ts';
import { AidParams, AidText, Base64, closed, NONE } from './schemas.ts';
import { REACH_ERRORS } from './tunnels.ts';

/** Longest path and query, characters. */
const MAX_PATH_CHARS = 8192;
/** Longest access token, characters. */
const MAX_ACCESS_TOKEN_CHARS = 512;
/** Longest time for a call, milliseconds; 60 s where nothing is said. */
const MAX_TIMEOUT_MS = 600_000;
const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_HEADERS = 100;

const HeaderValue = Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: MAX_HEADERS })]);

export const FetchAnswer = Type.Object({
  status: Type.Integer({ minimum: 200, maximum: 999 }),
  headers: Type.Record(Type.String(), Type.Array(Type.String()), { description: 'By lower-case name.' }),
  body: Base64,
  truncated: Type.Boolean({ description: 'The body is cut off at 4 MiB.' }),
});

export const callOperations = declare({
  fetch: {
    summary: "Calls a remote agent's service over HTTP; redirects are not followed.",
    method: 'POST',
    path: '/fetch/{aid}',
    params: AidParams,
    query: NONE,
    body: closed({
      path: Type.String({
        minLength: 1,
        maxLength: MAX_PATH_CHARS,
        pattern: '^/[!-~]*$',
        description: 'Path and query, percent-encoded.',
      }),
      method: Type.Optional(Type.String({ default: 'GET', pattern: '^[A-Za-z-]{1,20}$' })),
      headers: Type.Optional(Type.Record(Type.String(), HeaderValue, { maxProperties: MAX_HEADERS })),
      body_base64: Type.Optional(Base64),
      local_aid: Type.Optional(AidText),
      access_token: Type.Optional(
        Type.String({ maxLength: MAX_ACCESS_TOKEN_CHARS, description: 'What the remote agent asks for.' }),
      ),
      timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_TIMEOUT_MS, default: DEFAULT_TIMEOUT_MS })),
    }),
    output: FetchAnswer,
    permission: 'write',
    heartbeat: 'local_aid',
    errors: REACH_ERRORS.filter((code) => code !== 'relay_required'),
    tag: 'Calls',
    tool: {
      name: 'svc_fetch',
      description: "HTTP request to an agent's service.",
      rename: { remote_aid: 'aid' },
      omit: ['timeout_ms'],
      foreignText: true,
    },
  },
});
