/** `svc status`, `svc version`: the daemon itself. */

import { NO_NODE_KNOWN } from '../advice.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { roughSize } from '../reach-text.ts';
import { counted, formatFields, relativeTime } from '../text.ts';

function uptime(seconds: number): string {
  const hours = Math.floor(seconds / 3600);
  return hours > 0
    ? `${hours} h ${Math.floor((seconds % 3600) / 60)} min`
    : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Null where no daemon answers. */
async function daemonVersion(context: CliContext): Promise<string | null> {
  if (context.absence !== null) return null;
  const status = await context.client.status().catch(() => null);
  return status?.version ?? null;
}

function mappedText({ port_mapping, mapped_addrs }: AnswerOf<'status'>): string {
  const ports = mapped_addrs.join(', ');
  return port_mapping === 'double_nat' ? `${ports}, behind another router` : ports;
}

/** What waits for the agents here, all together; empty where nothing does. */
function waitingText({ pending = {} }: AnswerOf<'status'>): string {
  const all = Object.values(pending);
  const sum = (of: (one: (typeof all)[number]) => number): number => all.reduce((total, one) => total + of(one), 0);
  const [asks, unread, notes] = [
    sum(({ chat_invites }) => chat_invites),
    sum(({ chat_unread }) => chat_unread),
    sum(({ mailbox }) => mailbox),
  ];
  return [
    ...(asks > 0 ? [`${counted(asks, 'request')} to chat`] : []),
    ...(unread > 0 ? [counted(unread, 'unread message')] : []),
    ...(notes > 0 ? [counted(notes, 'note')] : []),
  ].join(', ');
}

export function nodeCommands(svc: CommandGroup, version: string): void {
  svc.call('status', 'show the state of the node: identity, network, traffic', {
    examples: ['svc status', 'svc status --json | jq .dht_peers'],
    operation: 'status',
    text: (s) =>
      formatFields({
        'waits for you': waitingText(s),
        node: s.node_aid,
        version: s.version,
        up: uptime(s.uptime_s),
        network: s.network_ready ? `ready, ${counted(s.dht_peers, 'peer')}` : 'not ready: no other node is known yet',
        reachability: s.nat_type_label,
        helpers: s.helpers.join(', '),
        'listens on': s.listen_addrs.join(', '),
        'seen as': s.observed_addrs.join(', '),
        ...(s.mapped_addrs.length === 0 ? {} : { 'ports of the router': mappedText(s) }),
        published: s.node_last_publish_at === null ? 'not yet' : relativeTime(s.node_last_publish_at, Date.now()),
        traffic: `${roughSize(s.bytes_up)} up, ${roughSize(s.bytes_down)} down`,
        tunnels: s.tunnels_active,
        'relayed for others': s.relayed.helps
          ? `${counted(s.relayed.sessions, 'session')}, ${roughSize(s.relayed.bytes)}`
          : '',
        data: s.data_dir,
      }),
    quiet: (s) => s.node_aid,
    remark: (s) => (s.dht_peers === 0 ? NO_NODE_KNOWN : undefined),
  });
  svc.run('version', 'show the versions of this command and of the daemon', {
    run: async (context) => ({ svc: version, svcd: await daemonVersion(context) }),
    text: (v) => `svc ${v.svc}, svcd ${v.svcd ?? 'not reachable'}`,
    quiet: (v) => v.svc,
  });
}
