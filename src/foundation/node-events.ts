/** The events of a node itself: what its owner sees happen to it. Kept in memory only. See docs/events.md. */
import type { CallKind, CallRefusal } from './domain/access.ts';
import type { CloseReason, PathKind } from './domain/tunnels.ts';
import type { UpdateState } from './domain/updates.ts';
import type { Aid } from './identity/aid.ts';

interface LinkData {
  /** The other node. */
  readonly node: Aid;
  /** Agents there that spoke with agents here lately. */
  readonly agents: readonly Aid[];
}

interface LinkPathData extends LinkData {
  readonly path: PathKind;
  /** Where packets go, `host:port`: on a relayed path, the relay. */
  readonly address: string;
  readonly is_relayed: boolean;
}

interface TunnelData {
  readonly id: string;
  readonly remote_aid: Aid;
  readonly listen: string;
}

/** What each kind of event carries. */
export interface NodeEventPayloads {
  /** Nodes of the network keep a new endpoint record of it. */
  'agent.published': { readonly seq: number };
  /** Its bound service answers, or no longer does. */
  'agent.service': { readonly service: string; readonly ok: boolean; readonly error: string };
  /** It has a newer delegation. */
  'agent.delegation': { readonly issued_at: string; readonly expires_at: string | null };
  'agent.registered': Readonly<Record<string, never>>;
  'agent.deleted': Readonly<Record<string, never>>;
  'link.opened': LinkPathData;
  'link.path': LinkPathData & { readonly before: PathKind };
  'link.closed': LinkData;
  'tunnel.opened': TunnelData;
  /** Connections of it have lost their path, and are reset at `held_until` unless another one comes. */
  'tunnel.no_path': TunnelData & { readonly since: string; readonly held_until: string; readonly connections: number };
  /** The outage is over: all connections have a path again, or the rest were given up. */
  'tunnel.path': TunnelData & { readonly state: 'back' | 'given_up'; readonly since: string };
  'tunnel.closed': TunnelData & { readonly reason: CloseReason | null };
  'call.refused': { readonly caller: Aid; readonly kind: CallKind; readonly code: CallRefusal };
  /** The node has come into the network, or has lost it. */
  network: { readonly ready: boolean; readonly peers: number };
  /** Keys of the configuration that apply from now on. */
  config: { readonly keys: readonly string[] };
  update: { readonly state: UpdateState; readonly latest_version: string | null; readonly error: string };
}

export type NodeEventType = keyof NodeEventPayloads;

/** Every kind. */
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
  'network',
  'config',
  'update',
] as const satisfies readonly NodeEventType[];
