/** What an assistant can do about an error, in terms of its tools. */
import type { ErrorCode, Thing } from '../../foundation/errors.ts';

const NEXT_STEPS: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid_request: "Correct the argument and call again; the tool's input schema says what it takes.",
  bad_aid: 'Copy the AID again; svc_agents_list shows those here, svc_discover finds others.',
  bad_key: 'Pass the key as it was returned when it was made.',
  bad_delegation:
    'Pass key and proof of one identity as they were made; a wallet signs the very text of svc_ethereum_delegation_message.',
  bad_card: 'Do not use this card; tell the user why it is refused.',
  bad_service_name: 'Choose a name such as "lang.translate" and call again.',
  bad_service_address: 'Pass host:port of a service on this machine.',
  local_aid_required: 'Call again with local_aid; svc_agents_list shows the agents here.',
  unauthorized: 'Ask the user to give this MCP client the API token of svcd.',
  local_only: 'Ask the user to do this on the machine of the daemon.',
  operational_key_mismatch: "Pass this agent's own operational key, or leave it out on its own machine.",
  access_denied: 'Ask the owner of that agent for access, or call again with an access_token.',
  not_found: 'List what there is first, such as with svc_agents_list or svc_tunnel_list.',
  resolve_failed: 'Check the AID, or look for another agent with svc_discover; try again later.',
  too_large: 'Send less at once.',
  rate_limited: 'Wait, then call again.',
  no_inbound: 'Nothing to do here: its owner has to bind a service. Look for another agent with svc_discover.',
  inbound_unreachable: 'Try again later, or look for another agent with svc_discover.',
  connect_failed: 'Try again later; svc_status tells whether this node is on the network.',
  protocol_error: 'Try again later, or use another agent.',
  timeout: 'Try again; a write may have been done all the same, so look first.',
  network_not_ready: 'Look at svc_status until network_ready is true, then call again.',
  not_acknowledged: 'Look at svc_status; call again when network_ready is true.',
  stale_sequence: 'Call svc_agent_publish, and stop the other copy of this agent.',
  port_in_use: 'Call again with another local_port, or without one.',
  not_friends: 'Call chat_request and wait until it is accepted.',
  wrong_state: 'Look at the present state first, then choose the call that fits it.',
  self: 'Name another agent.',
  not_member: 'Join with group_join first.',
  files_root_required: 'Ask the user to switch objects on: they type svc config set files_root "".',
  quota_exceeded: 'Close or delete something first.',
  daemon_unreachable: 'Ask the user to start svcd, then call again.',
  internal: 'Ask the user to look into the log of svcd.',
};

/** Which tool lists the things of a kind, or makes one. */
const WHERE: Readonly<Record<Thing, string>> = {
  agent: 'svc_agents_list shows the agents here.',
  tunnel: 'svc_tunnel_list shows the tunnels, and why the last ones closed.',
  origin: 'GET /origins shows the local addresses; svc_origin_open opens one.',
  group: 'group_list shows the groups of this agent; join others with group_join.',
  entry: 'group_read shows the entries of the group.',
  object: 'group_object_locate says who has an object; group_object_put makes one.',
  offer: 'svc_file_offers shows the files that are offered.',
  file: 'Ask the user for the path: it is below files_root, which svc_status shows.',
  card: 'svc_agent_get shows whether the profile of an agent here names a card.',
  service: 'svc_agent_get shows the services of an agent.',
  tool: 'tools/list shows the tools.',
};

/** The next step after an error. @param thing what was not found */
export function nextStep(code: ErrorCode, thing?: Thing): string {
  if (code === 'not_found' && thing !== undefined) return WHERE[thing];
  return NEXT_STEPS[code] ?? 'Tell the user what happened.';
}
