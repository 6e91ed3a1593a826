/** The MCP hub: the tools of other agents behind one MCP endpoint, and the definitions that the owner accepted. */
import { Type } from 'typebox';
import {
  HUB_CHANGE_ID_CHARS,
  HUB_ORIGINS,
  HUB_RESULTS_DEFAULT,
  HUB_STATES,
  HUB_TOOL_KINDS,
  MAX_HUB_QUERY_CHARS,
  MAX_HUB_REF_CHARS,
  MAX_HUB_RESULTS,
  MIN_HUB_REF_CHARS,
} from '../foundation/domain/hub.ts';
import { declare, declareStreams } from './declare.ts';
import { NextCursor, PageQuery } from './paging.ts';
import { AidParams, AidText, AnyObject, closed, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

const Local = closed({
  local_aid: Type.Optional(AidText),
});

const Source = Type.Object({
  aid: AidText,
  origin: oneOf([...HUB_ORIGINS], {
    description:
      '`book`: it has a label. `named`: it was added. `found`: a search of the network found it. `removed`: it was removed although it has a label.',
  }),
  state: oneOf([...HUB_STATES], {
    description:
      '`new`: not requested yet. `ok`: its tools are known. `away`: it did not answer. `denied`: it denies access. `none`: it has no tools.',
  }),
  error: nullable(Type.String({ description: 'Code of the last failure.' })),
  listed_at: nullable(Timestamp),
  tools: Type.Integer({ minimum: 0, description: 'Tools that can be called.' }),
  changed: Type.Integer({ minimum: 0, description: 'Accepted tools that changed and wait for the owner.' }),
  unaccepted: Type.Integer({ minimum: 0, description: 'Tools that were never accepted and wait for the owner.' }),
  skipped: Type.Integer({ minimum: 0, description: 'Tools with an invalid name, or beyond the limits.' }),
});

const ToolText = Type.String({ description: 'The agent, its label if it has one, "/" and the name of the tool.' });

const View = Type.Object({
  title: Type.String(),
  description: Type.String(),
  input_schema: AnyObject,
  output_schema: nullable(AnyObject),
  annotations: nullable(AnyObject),
});

const Change = Type.Object({
  id: Type.String({ description: 'The beginning of the hash of exactly this definition.' }),
  aid: AidText,
  tool: ToolText,
  at: Timestamp,
  before: nullable(View),
  after: View,
});

const ChangeId = closed({
  id: Type.String({ pattern: `^[0-9a-f]{${HUB_CHANGE_ID_CHARS}}$` }),
});

const Decided = Type.Object({ aid: AidText, tool: ToolText });

export const HubQuery = Type.String({
  minLength: 1,
  maxLength: MAX_HUB_QUERY_CHARS,
  description: 'Keywords that describe the tool, such as `create issue`. Words are compared, not meanings.',
});
export const HubLimit = Type.Integer({ minimum: 1, maximum: MAX_HUB_RESULTS, default: HUB_RESULTS_DEFAULT });
export const HubReference = Type.String({ minLength: MIN_HUB_REF_CHARS, maxLength: MAX_HUB_REF_CHARS });

const ERRORS = ['bad_aid', 'not_found', 'local_aid_required'] as const;

export const hubOperations = declare(
  { tag: 'MCP hub', errors: ERRORS },
  {
    hubSources: {
      summary: 'Lists the agents whose tools the MCP hub offers to a local agent.',
      route: 'GET /mcp/hub/sources',
      query: Local,
      output: Type.Object({ sources: Type.Array(Source) }),
    },

    hubAdd: {
      summary:
        'Adds an agent to the hub and accepts its first list of tools. Of an agent that the hub knew before, only tools that it listed then are accepted.',
      route: 'PUT /mcp/hub/sources/{aid}',
      params: AidParams,
      body: Local,
      output: Source,
      errors: [...ERRORS, 'self', 'quota_exceeded', 'cancelled'],
    },

    hubRefresh: {
      summary: 'Reads the tools of one agent of the hub, or of all, without waiting until they are due.',
      route: 'POST /mcp/hub/refresh',
      body: closed({ aid: Type.Optional(AidText), local_aid: Type.Optional(AidText) }),
      output: Type.Object({ sources: Type.Array(Source) }),
      errors: [...ERRORS, 'cancelled'],
    },

    hubRemove: {
      summary: 'Removes an agent from the hub, with its accepted definitions.',
      route: 'DELETE /mcp/hub/sources/{aid}',
      params: AidParams,
      query: Local,
      output: Ok,
    },

    hubChanges: {
      summary: 'Lists the definitions of tools that wait for the owner.',
      route: 'GET /mcp/hub/changes',
      query: closed({ ...Local.properties, ...PageQuery.properties }),
      output: Type.Object({ changes: Type.Array(Change), next_cursor: NextCursor }),
    },

    hubAccept: {
      summary: 'Accepts exactly the definition of a tool that this ID was listed with.',
      route: 'POST /mcp/hub/changes/{id}/accept',
      params: ChangeId,
      body: Local,
      output: Decided,
      errors: [...ERRORS, 'quota_exceeded'],
    },

    hubRefuse: {
      summary:
        'Refuses one definition of a tool. The tool stays unavailable until its agent offers another one, which waits too.',
      route: 'POST /mcp/hub/changes/{id}/refuse',
      params: ChangeId,
      body: Local,
      output: Decided,
      errors: [...ERRORS, 'quota_exceeded'],
    },

    hubFind: {
      summary: 'Finds tools by keywords, the best first.',
      route: 'POST /mcp/hub/find',
      body: closed({
        query: HubQuery,
        limit: Type.Optional(HubLimit),
        from: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: MAX_HUB_REF_CHARS,
            description: '`known` (default), `network`, or an agent of the hub.',
          }),
        ),
        local_aid: Type.Optional(AidText),
      }),
      output: Type.Object({
        tools: Type.Array(
          Type.Object({
            tool: ToolText,
            description: Type.String(),
            arguments: Type.String({ description: 'Names of the parameters; "?" marks optional ones.' }),
            away: Type.Optional(Type.Boolean({ description: 'Its agent did not answer the last request.' })),
          }),
        ),
        more: Type.Integer({ minimum: 0, description: 'Further matches.' }),
        waiting_for_owner: Type.Optional(Type.Integer({ minimum: 1 })),
        away: Type.Optional(Type.Array(Type.String(), { description: 'Agents that did not answer.' })),
      }),
      errors: [...ERRORS, 'cancelled'],
    },

    hubDescribe: {
      summary: 'Returns the accepted definition of a tool.',
      route: 'GET /mcp/hub/tool',
      query: closed({ tool: HubReference, local_aid: Type.Optional(AidText) }),
      output: Type.Object({
        tool: ToolText,
        aid: AidText,
        kind: oneOf([...HUB_TOOL_KINDS]),
        title: Type.Optional(Type.String()),
        description: Type.Optional(Type.String()),
        input_schema: AnyObject,
        output_schema: Type.Optional(AnyObject),
        annotations: Type.Optional(AnyObject),
        accepted_at: Timestamp,
        away: Type.Boolean(),
      }),
      errors: [...ERRORS, 'not_accepted'],
    },
  },
);

export const hubStreams = declareStreams(
  {
    summary: 'The MCP hub (Streamable HTTP): three tools that find, describe and call the tools of other agents.',
    methods: 'ANY',
    params: closed({}),
    query: Local,
    accepts: 'application/json',
    // Clients that end a session send it without a media type.
    bodiless: ['DELETE'],
    produces: 'application/json',
    permission: 'write',
    errors: ['too_large', 'method_not_allowed', 'unsupported_media_type', 'not_found', 'local_aid_required'],
    tag: 'MCP hub',
  },
  { mcpHub: { path: '/mcp/hub' } },
);
