/** Events of the node itself, for its owner. Kept in memory only. See docs/events.md. */
import type { CallKind, CallRefusal } from './domain/access.ts';
import type { CloseReason, PathKind } from './domain/tunnels.ts';
import type { UpdateState } from './domain/updates.ts';
import type { Aid } from './identity/aid.ts';

interface LinkData {
  /** The other node. */
  readonly node: Aid;
  /** Agents on that node that recently communicated with agents here. */
  readonly agents: readonly Aid[];
}

interface LinkPathData extends LinkData {
  readonly path: PathKind;
  /** The address that packets are sent to, `host:port`. On a relayed path this is the relay. */
  readonly address: string;
  readonly is_relayed: boolean;
}

interface TunnelData {
  readonly id: string;
  readonly remote_aid: Aid;
  readonly listen: string;
}

/** Payload of each event type. */
export interface NodeEventPayloads {
  /** Storage nodes accepted a new endpoint record of the agent. */
  'agent.published': { readonly seq: number };
  /** The bound service of the agent became reachable or unreachable. */
  'agent.service': { readonly service: string; readonly ok: boolean; readonly error: string };
  /** The agent has a newer delegation. */
  'agent.delegation': { readonly issued_at: string; readonly expires_at: string | null };
  'agent.registered': Readonly<Record<string, never>>;
  'agent.deleted': Readonly<Record<string, never>>;
  'link.opened': LinkPathData;
  'link.path': LinkPathData & { readonly before: PathKind };
  'link.closed': LinkData;
  'tunnel.opened': TunnelData;
  /** Connections of the tunnel lost their path. They are reset at `held_until` unless a new path is found. */
  'tunnel.no_path': TunnelData & { readonly since: string; readonly held_until: string; readonly connections: number };
  /** The outage is over: all connections have a path again, or the rest was reset. */
  'tunnel.path': TunnelData & { readonly state: 'back' | 'given_up'; readonly since: string };
  'tunnel.closed': TunnelData & { readonly reason: CloseReason | null };
  'call.refused': { readonly caller: Aid; readonly kind: CallKind; readonly code: CallRefusal };
  /** Definitions of tools of an agent wait for the owner: changed ones, and ones that were never accepted. */
  'hub.held': { readonly remote_aid: Aid; readonly changed: number; readonly unaccepted: number };
  /** The node joined the network, or lost it. */
  network: { readonly ready: boolean; readonly peers: number };
  /** Configuration keys whose new values apply now. */
  config: { readonly keys: readonly string[] };
  update: { readonly state: UpdateState; readonly latest_version: string | null; readonly error: string };
}

export type NodeEventType = keyof NodeEventPayloads;

/** All event types. */
export const NODE_EVENT_TYPES = [
  'agent.published',
  'agent.service',
  'agent.delegation',
  'agent.registered',
  'agent.deleted',
  'link.opened',
  'link.path',
  'link.closed',
  'tunnel.opened',
  'tunnel.no_path',
  'tunnel.path',
  'tunnel.closed',
  'call.refused',
  'hub.held',
  'network',
  'config',
  'update',
] as const satisfies readonly NodeEventType[];
