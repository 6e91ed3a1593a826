/** Which tools a profile shows: what every assistant needs first, and what its own field adds. */
import { MCP_PROFILES, type McpProfile } from '../../operations/mcp.ts';

/** An identity of one's own, published, and others found and asked: the main job. */
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

/** Names, or beginnings of names that end with `_`. */
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

/** Whether a tool is shown. `profiles`: names with commas between them, all tools where it is left out. */
export function isShown(tool: string, profiles: string | undefined): boolean {
  if (profiles === undefined) return true;
  const patterns = [...CORE, ...profiles.split(',').flatMap((name) => (isProfile(name) ? ADDED[name] : []))];
  return patterns.some((pattern) => matches(tool, pattern));
}
