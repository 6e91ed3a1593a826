/** Operations on public addresses of local agents. */
import { Type } from 'typebox';
import {
  CLIENT_LABEL_PATTERN,
  EXPOSURE_MODES,
  EXPOSURE_STATES,
  MAX_ENTRY_TOKEN_CHARS,
  MAX_EXPOSURE_TOKENS,
  MAX_EXPOSURES,
  MAX_PUBLIC_CLIENTS,
  MAX_PUBLIC_RULE_CHARS,
  MAX_PUBLIC_RULES,
  PUBLIC_RULE_PATTERN,
} from '../foundation/domain/exposures.ts';
import { MAX_PUBLIC_NAME_CHARS } from '../foundation/domain/public-names.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, closed, Id, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

const Rules = Type.Array(Type.String({ pattern: PUBLIC_RULE_PATTERN, maxLength: MAX_PUBLIC_RULE_CHARS }), {
  maxItems: MAX_PUBLIC_RULES,
  description: 'Requests, such as `POST /hooks/github`: a method or `*`, and a path with all paths below it.',
});
const Count = Type.Integer({ minimum: 0 });

const TokenView = Type.Object({
  id: Type.String(),
  label: Type.String(),
  rules: Rules,
  expires_at: nullable(Timestamp),
  created_at: Timestamp,
});

/** A client of a public address. */
export const PublicClient = Type.Object({
  label: Type.String({ description: 'Of its token. Empty: without a token.' }),
  address: Type.String(),
  requests: Count,
  refused: Count,
  last_at: Timestamp,
});

const ExposureView = Type.Object({
  id: Type.String(),
  aid: AidText,
  url: Type.String(),
  mode: oneOf([...EXPOSURE_MODES]),
  rules: Rules,
  entry: nullable(AidText),
  state: oneOf([...EXPOSURE_STATES], {
    description:
      '`off`: after a restored backup, until you expose the agent again. `waiting`: for the entry or the certificate.',
  }),
  problem: nullable(
    Type.Object(
      { code: Type.String(), message: Type.String() },
      { description: 'The last failure of the name or the certificate.' },
    ),
  ),
  certificate_expires_at: nullable(Timestamp),
  tokens: Type.Array(TokenView, { maxItems: MAX_EXPOSURE_TOKENS }),
  clients: Type.Array(PublicClient, {
    maxItems: MAX_PUBLIC_CLIENTS,
    description: 'Since the start, the newest first.',
  }),
  opened_at: Timestamp,
});

const ExposureParams = closed({ id: Id });
const NAMED = { params: ExposureParams, errors: ['not_found'] } as const;

export const exposureOperations = declare(
  { tag: 'Public addresses' },
  {
    exposureOpen: {
      summary: 'Exposes a local agent at a public https address, or changes who may call there.',
      route: 'POST /exposures/{aid}',
      params: AidParams,
      body: closed({
        name: Type.Optional(
          Type.String({
            maxLength: MAX_PUBLIC_NAME_CHARS,
            description:
              'A label such as `demo`, or a name below a domain of the entry. Default: the name of the agent.',
          }),
        ),
        at: Type.Optional(AidText),
        mode: Type.Optional(
          oneOf([...EXPOSURE_MODES, 'mcp'], {
            description: '`only`: requests of `rules` need no token. `public`: no request does. Default: all do.',
          }),
        ),
        rules: Type.Optional(Rules),
        invitation_token: Type.Optional(Type.String({ maxLength: MAX_ENTRY_TOKEN_CHARS })),
      }),
      output: ExposureView,
      status: 201,
      errors: [
        'not_found',
        'no_inbound',
        'tunnels_only',
        'no_entry',
        'bad_public_name',
        'name_taken',
        'name_not_allowed',
        'entry_denied',
        'quota_exceeded',
        'not_supported',
        'connect_failed',
        'resolve_failed',
        'timeout',
      ],
    },

    exposureList: {
      summary: 'Lists the public addresses, with their tokens and clients.',
      route: 'GET /exposures',
      output: Type.Object({ exposures: Type.Array(ExposureView, { maxItems: MAX_EXPOSURES }) }),
      tool: { name: 'svc_exposures', description: 'Public addresses of agents.', foreignText: true },
    },

    exposureOff: {
      summary: 'Removes a public address with its tokens and its name. Its connections close immediately.',
      route: 'DELETE /exposures/{id}',
      ...NAMED,
      output: Ok,
    },

    exposureTokenAdd: {
      summary: 'Makes a token for one client of a public address. Only this response contains it.',
      route: 'POST /exposures/{id}/tokens',
      params: ExposureParams,
      body: closed({
        label: Type.String({ pattern: CLIENT_LABEL_PATTERN, description: 'Names the client. The service sees it.' }),
        rules: Type.Optional(Rules),
        expires_at: Type.Optional(Timestamp),
      }),
      output: Type.Object({ token: Type.String(), id: Type.String(), label: Type.String() }),
      status: 201,
      errors: [...NAMED.errors, 'quota_exceeded', 'wrong_state'],
    },

    exposureTokenRemove: {
      summary: 'Removes a token by its ID or label. Its requests end immediately.',
      route: 'DELETE /exposures/{id}/tokens/{token}',
      params: closed({ id: Id, token: Id }),
      output: Ok,
      errors: ['not_found'],
    },
  },
);
