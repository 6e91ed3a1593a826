/** The MCP server over Streamable HTTP, which tools it shows, and which programs use it. */
import { Type } from 'typebox';
import { declare, declareStreams } from './declare.ts';
import { closed, NONE, nullable } from './schemas.ts';

/** Selections of tools, for assistants that need only some of them. */
export const MCP_PROFILES = ['core', 'calls', 'mail', 'chat', 'rooms'] as const;
export type McpProfile = (typeof MCP_PROFILES)[number];

const ONE_PROFILE = `(?:${MCP_PROFILES.join('|')})`;
/** One profile, or several with commas between them. */
export const PROFILES_PATTERN = `^${ONE_PROFILE}(?:,${ONE_PROFILE}){0,${MCP_PROFILES.length - 1}}$`;

const MCP = {
  summary: 'The MCP server (Streamable HTTP, stateless): the operations as tools.',
  methods: 'ANY',
  params: NONE,
  query: closed({
    profile: Type.Optional(
      Type.String({
        pattern: PROFILES_PATTERN,
        description: `Shows fewer tools: ${MCP_PROFILES.map((name) => `\`${name}\``).join(', ')}, or several with commas.`,
      }),
    ),
  }),
  accepts: 'application/json',
  produces: 'application/json',
  permission: 'write',
  errors: ['too_large', 'method_not_allowed', 'unsupported_media_type'],
  tag: 'MCP',
} as const;

export const mcpStreams = declareStreams(MCP, {
  mcp: { path: '/mcp/' },

  mcpBare: {
    summary: 'The same server: clients write its address with and without the slash.',
    path: '/mcp',
  },
});

export const mcpOperations = declare(
  { tag: 'MCP' },
  {
    mcpHosts: {
      summary: 'Says which programs of this machine can use svcd over MCP, and which do; only for programs there.',
      route: 'GET /mcp/hosts',
      output: Type.Object({
        hosts: Type.Array(
          Type.Object({
            name: Type.String({ description: 'As `svcd mcp add` takes it.' }),
            title: Type.String(),
            file: Type.String({ description: 'Where its configuration is, or would be.' }),
            is_here: Type.Boolean({
              description: 'It has been used here: there is a configuration, or a place for one.',
            }),
            has_svcd: nullable(
              Type.Boolean({ description: 'Whether its configuration names svcd; null where it cannot be read.' }),
            ),
          }),
        ),
      }),
      permission: 'local_only',
    },
  },
);
