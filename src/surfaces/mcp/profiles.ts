/** The tools of each profile: the core tools, and tools of its field. */
import { MCP_PROFILES, type McpProfile } from '../../operations/mcp.ts';

/** Create and publish an identity, find others and call them: the main tasks. */
const CORE = [
  'svc_status',
  'svc_identity_generate',
  'svc_agent_register',
  'svc_agents_list',
  'svc_agent_patch',
  'svc_agent_publish',
  'svc_service_register',
  'svc_discover',
  'svc_resolve',
  'svc_fetch',
  'svc_events_poll',
];

/** Tool names, or prefixes that end with `_`. */
const ADDED: Readonly<Record<McpProfile, readonly string[]>> = {
  core: [],
  calls: ['svc_connect', 'svc_tunnel_', 'svc_origin_'],
  mail: ['svc_mailbox_', 'svc_file_'],
  chat: ['chat_'],
  rooms: ['group_'],
};

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('_') ? name.startsWith(pattern) : name === pattern;
}

function isProfile(text: string): text is McpProfile {
  return MCP_PROFILES.some((name) => name === text);
}

/** True if a tool is shown. `profiles`: names separated by commas; all tools if omitted. */
export function isShown(tool: string, profiles: string | undefined): boolean {
  if (profiles === undefined) return true;
  const patterns = [...CORE, ...profiles.split(',').flatMap((name) => (isProfile(name) ? ADDED[name] : []))];
  return patterns.some((pattern) => matches(tool, pattern));
}
