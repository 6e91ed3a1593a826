/** The MCP server over Streamable HTTP, and which tools it shows. */
import { Type } from 'typebox';
import { declareStreams } from './declare.ts';
import { closed, NONE } from './schemas.ts';

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
