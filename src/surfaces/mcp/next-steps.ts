/** The next step for an assistant after an error, in terms of its tools. */
import type { ErrorCode, ResourceKind } from '../../foundation/errors.ts';

const NEXT_STEPS: Readonly<Partial<Record<ErrorCode, string>>> = {
  invalid_request: "Correct the argument and call again; see the tool's input schema.",
  bad_aid: 'Copy the AID again; svc_agents_list shows local agents, svc_discover finds others.',
  bad_key: 'Pass the key exactly as it was returned.',
  bad_delegation:
    'Pass key and proof of one identity exactly as returned; a wallet must sign the exact text of svc_ethereum_delegation_message.',
  bad_card: 'Do not use this card; tell the user why it was rejected.',
  bad_service_name: 'Choose a name such as "lang.translate" and call again.',
  bad_service_address: 'Pass host:port of a service on this machine.',
  local_aid_required: 'Call again with local_aid; svc_agents_list shows the agents here.',
  unauthorized: 'Ask the user to give this MCP client the API token of svcd.',
  local_only: 'Ask the user to do this on the machine of the daemon.',
  operational_key_mismatch: "Pass this agent's own operational key, or omit it on its own machine.",
  access_denied: 'Ask the owner of that agent for access, or call again with an access_token.',
  not_found: 'List the existing items first, such as with svc_agents_list or svc_tunnel_list.',
  resolve_failed: 'Check the AID, or find another agent with svc_discover; try again later.',
  too_large: 'Send less data.',
  rate_limited: 'Wait, then call again.',
  no_inbound: 'Its owner must bind a service. Find another agent with svc_discover.',
  inbound_unreachable: 'Try again later, or find another agent with svc_discover.',
  connect_failed: 'Try again later; svc_status shows whether this node is on the network.',
  protocol_error: 'Try again later, or use another agent.',
  timeout: 'Try again; a write may have completed, so check first.',
  network_not_ready: 'Poll svc_status until network_ready is true, then call again.',
  not_acknowledged: 'Check svc_status; call again when network_ready is true.',
  stale_sequence: 'Call svc_agent_publish, and stop the other copy of this agent.',
  port_in_use: 'Call again with another local_port, or without one.',
  not_friends: 'Call chat_request and wait until it is accepted.',
  wrong_state: 'Check the present state, then choose a call that fits it.',
  self: 'Name another agent.',
  not_member: 'Join with group_join first.',
  files_root_required: 'Ask the user to turn objects on with: svc config set files_root "".',
  quota_exceeded: 'Close or delete something first.',
  daemon_unreachable: 'Ask the user to start svcd, then call again.',
  internal: 'Ask the user to check the log of svcd.',
};

/** The tool that lists or creates the things of a kind. */
const WHERE: Readonly<Record<ResourceKind, string>> = {
  agent: 'svc_agents_list shows the local agents.',
  tunnel: 'svc_tunnel_list shows the tunnels, and why the last ones closed.',
  origin: 'GET /origins shows the local addresses; svc_origin_open opens one.',
  group: 'group_list shows the groups of this agent; group_join joins others.',
  entry: 'group_read shows the entries of the group.',
  object: 'group_object_locate finds the holders of an object; group_object_put creates one.',
  offer: 'svc_file_offers lists the offered files.',
  file: 'Ask the user for the path: it is below files_root, which svc_status shows.',
  card: 'svc_agent_get shows whether the profile of a local agent names a card.',
  service: 'svc_agent_get shows the services of an agent.',
  tool: 'tools/list shows the tools.',
};

/** The next step after an error. @param thing the kind that was not found */
export function nextStep(code: ErrorCode, thing?: ResourceKind): string {
  if (code === 'not_found' && thing !== undefined) return WHERE[thing];
  return NEXT_STEPS[code] ?? 'Report the error to the user.';
}
