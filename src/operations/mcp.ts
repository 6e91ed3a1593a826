/** The MCP server over Streamable HTTP, its tool profiles, and the programs that use it. */
import { Type } from 'typebox';
import { declare, declareStreams } from './declare.ts';
import { closed, NONE, nullable } from './schemas.ts';

/** Tool profiles: subsets for assistants that need only some tools, and `full`. */
export const MCP_PROFILES = ['full', 'lean', 'core', 'calls', 'mail', 'chat', 'groups'] as const;
export type McpProfile = (typeof MCP_PROFILES)[number];
/** The profile of the entries that svcd writes for programs that start it. They show all their tools to the model. */
export const HOST_PROFILE: McpProfile = 'lean';

const ONE_PROFILE = `(?:${MCP_PROFILES.join('|')})`;
/** One profile, or several separated by commas. */
export const PROFILES_PATTERN = `^${ONE_PROFILE}(?:,${ONE_PROFILE}){0,${MCP_PROFILES.length - 1}}$`;

const MCP = {
  summary: 'The MCP server (Streamable HTTP, stateless). Each tool is an operation.',
  methods: 'ANY',
  params: NONE,
  query: closed({
    profile: Type.Optional(
      Type.String({
        pattern: PROFILES_PATTERN,
        description: `Offers fewer tools: ${MCP_PROFILES.map((name) => `\`${name}\``).join(', ')}, or several separated by commas.`,
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
    summary: 'The MCP server at the address with a trailing slash, which some clients use.',
    path: '/mcp',
  },
});

export const mcpOperations = declare(
  { tag: 'MCP' },
  {
    mcpHosts: {
      summary: 'Lists the programs on this machine that can use svcd over MCP, and whether they are configured.',
      route: 'GET /mcp/hosts',
      output: Type.Object({
        hosts: Type.Array(
          Type.Object({
            name: Type.String({ description: 'Name for `svcd mcp add`.' }),
            title: Type.String(),
            file: Type.String({ description: 'Path of its configuration file, which may not exist.' }),
            is_here: Type.Boolean({
              description: 'The program is installed: its configuration file or folder exists.',
            }),
            has_svcd: nullable(
              Type.Boolean({ description: 'Its configuration contains svcd. Null if it cannot be read.' }),
            ),
          }),
        ),
      }),
      permission: 'local_only',
    },
  },
);
