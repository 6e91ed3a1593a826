/** `svc status`, `svc version`: the daemon itself. */
import { NO_NODE_KNOWN } from '../../../foundation/domain/joining.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { type StatusData, statusText } from '../status-text.ts';

/** Null if the daemon does not answer. */
async function daemonVersion(context: CliContext): Promise<string | null> {
  if (context.addressError !== null) return null;
  const status = await context.client.status().catch(() => null);
  return status?.version ?? null;
}

/** Number of agents whose problems are shown. */
const MAX_AGENTS = 50;

/** The state of the node, and of its agents if a person reads it. */
async function glance({ client, options }: CliContext): Promise<StatusData> {
  const nobody = { agents: [], next_cursor: undefined };
  const people = options.json !== true && options.quiet !== true;
  const [status, { agents, next_cursor }] = await Promise.all([
    client.status(),
    people ? client.agentsList({ limit: MAX_AGENTS }).catch(() => nobody) : nobody,
  ]);
  return { status, agents, more: next_cursor !== undefined };
}

export function nodeCommands(svc: CommandGroup, version: string): void {
  svc.run('status', 'show the state of the node: problems, pending items, agents, network, traffic', {
    examples: ['svc status', 'svc status --watch', 'svc status --json | jq .dht_peers'],
    run: glance,
    json: ({ status }) => status,
    aids: 'told',
    watch: true,
    text: (seen, _, names) => statusText(seen, names, Date.now()),
    quiet: ({ status }) => status.node_aid,
    remark: ({ status }) => (status.dht_peers + status.dht_clients === 0 ? NO_NODE_KNOWN : undefined),
  });
  svc.run('version', 'show the versions of this command and of the daemon', {
    run: async (context) => ({ svc: version, svcd: await daemonVersion(context) }),
    text: (v) => `svc ${v.svc}, svcd ${v.svcd ?? 'not reachable'}`,
    quiet: (v) => v.svc,
  });
}
