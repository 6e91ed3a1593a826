/** Calls: HTTP requests to remote agents. */
import { Type } from 'typebox';
import { sizeText } from '../foundation/display-text.ts';
import {
  DEFAULT_CALL_TIMEOUT_MS,
  MAX_CALL_PATH_CHARS,
  MAX_CALL_TIMEOUT_MS,
  MAX_FETCHED_BYTES,
} from '../foundation/domain/services.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, Base64, closed } from './schemas.ts';
import { AccessToken, AskMembers, CALL_ERRORS, REACH_ERRORS } from './tunnels.ts';

// Operations on the evidence of calls.

const EVIDENCE = { params: AidParams, errors: ['bad_aid', 'not_found'], tag: 'Calls' } as const;

const State = Type.Object({
  aid: AidText,
  enabled: Type.Boolean({
    description: 'Calls of this agent carry a signature that the called service can show to others.',
  }),
});

export const evidenceOperations = declare(EVIDENCE, {
  evidenceGet: {
    summary: 'Shows whether the calls of an agent carry evidence: see docs/evidence.md.',
    route: 'GET /agents/{aid}/evidence',
    output: State,
  },

  evidenceSet: {
    summary: "Turns the evidence of an agent's calls on or off. Default: off.",
    route: 'PUT /agents/{aid}/evidence',
    body: closed({ enabled: Type.Boolean() }),
    output: State,
    heartbeat: true,
  },
});

/** Maximum number of headers of a request, and of values of each. */
const MAX_HEADERS = 100;
/** Final HTTP statuses. Interim ones are below 200, and there are none with four digits. */
const MIN_STATUS = 200;
const MAX_STATUS = 999;

const HeaderValue = Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: MAX_HEADERS })]);

export const FetchAnswer = Type.Object({
  status: Type.Integer({ minimum: MIN_STATUS, maximum: MAX_STATUS }),
  headers: Type.Record(Type.String(), Type.Array(Type.String()), { description: 'Lower-case names.' }),
  body: Base64,
  truncated: Type.Boolean({ description: `The body is cut off at ${sizeText(MAX_FETCHED_BYTES)}.` }),
});

const COMMON = { tag: 'Calls' };

export const callOperations = declare(COMMON, {
  fetch: {
    summary: 'Sends an HTTP request to the service of an agent. Redirects are not followed.',
    route: 'POST /fetch/{aid}',
    params: AidParams,
    body: closed({
      path: Type.String({
        minLength: 1,
        maxLength: MAX_CALL_PATH_CHARS,
        pattern: '^/[!-~]*$',
        description: 'Path and query, percent-encoded.',
      }),
      method: Type.Optional(Type.String({ default: 'GET', pattern: '^[A-Za-z-]{1,20}$' })),
      headers: Type.Optional(Type.Record(Type.String(), HeaderValue, { maxProperties: MAX_HEADERS })),
      body_base64: Type.Optional(Base64),
      local_aid: Type.Optional(AidText),
      access_token: AccessToken,
      ...AskMembers,
      timeout_ms: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_CALL_TIMEOUT_MS,
          default: DEFAULT_CALL_TIMEOUT_MS,
          description: 'Longest wait for the response headers and between two bytes. 0: no limit.',
        }),
      ),
      timeout_s: Type.Optional(
        Type.Number({
          minimum: 0,
          maximum: MAX_CALL_TIMEOUT_MS / 1000,
          description: `Longest silence of the service. Default ${DEFAULT_CALL_TIMEOUT_MS / 1000}; 0: no limit.`,
        }),
      ),
    }),
    output: FetchAnswer,
    carriesBytes: true,
    limitsItself: true,
    heartbeat: 'local_aid',
    errors: [...REACH_ERRORS, ...CALL_ERRORS, 'access_pending', 'tunnels_only', 'bad_evidence'],
    tool: {
      name: 'svc_fetch',
      description: "HTTP request to an agent's service.",
      rename: { remote_aid: 'aid' },
      omit: ['timeout_ms', 'note', 'wait_s'],
      foreignText: true,
    },
  },
});
