/** `svc links`, `svc peers`, `svc netcheck`, `svc ping`: how this node reaches others, and how others reach it. */
import {
  MAX_PING_INTERVAL_MS,
  MAX_PING_TIMEOUT_MS,
  MIN_PING_INTERVAL_MS,
  PING_COUNT,
  TRAFFIC_HOURS,
} from '../../../foundation/domain/reach.ts';
import type { CommandGroup } from '../command-group.ts';
import { integer, seconds } from '../options.ts';
import { MAX_UNTIL_DIRECT, ping } from '../ping.ts';
import { agentNetcheckText, linksText, netcheckText, peersText, pingSummary, trafficText } from '../reach-text.ts';

export function reachCommands(svc: CommandGroup): void {
  svc.call('links', 'list the connections to other nodes and their paths', {
    examples: ['svc links', "svc links --json | jq -r '.links[] | select(.is_relayed) | .node'"],
    operation: 'nodeLinks',
    watch: true,
    text: ({ links }) => linksText(links),
    quiet: ({ links }) => links.map(({ node }) => node).join('\n'),
  });
  svc.call('peers', 'list the known nodes', {
    examples: ['svc peers', 'svc peers --quiet | wc -l'],
    operation: 'nodePeers',
    watch: true,
    text: peersText,
    quiet: ({ peers }) => peers.map(({ address }) => address).join('\n'),
  });
  svc.call('traffic', 'show the traffic of this node, minute by minute', {
    examples: ['svc traffic', 'svc traffic --hours 1 --json'],
    options: { '--hours <n>': integer(`number of hours; default ${TRAFFIC_HOURS}`) },
    operation: 'nodeTraffic',
    watch: true,
    text: trafficText,
    quiet: ({ samples }) => samples.map(({ at, bytes_up, bytes_down }) => `${at} ${bytes_up} ${bytes_down}`).join('\n'),
  });
  svc.run('netcheck', 'check the network in front of this node, or the paths to an agent', {
    examples: ['svc netcheck', 'svc netcheck aid1…'],
    options: { '[aid]': 'an agent: which paths would be tried, in order' },
    progress: 'Looking',
    run: async ({ client }, { aid }) =>
      aid === undefined
        ? { node: await client.netcheck(), agent: null }
        : { node: null, agent: await client.netcheckAgent({ aid }) },
    text: ({ node, agent }) => (node === null ? agentNetcheckText(agent) : netcheckText(node)),
    quiet: ({ node, agent }) => (node === null ? (agent.connection?.path ?? 'none') : node.nat_type_label),
    json: ({ node, agent }) => node ?? agent,
  });
  svc.run('ping <aid>', 'measure the path to an agent: round trip, loss, and why it is not direct', {
    examples: [
      'svc ping aid1…',
      'svc ping bob --until-direct',
      'svc ping bob -c 10 --interval 0.2 --json | jq .rtt_ms.avg',
    ],
    options: {
      '-c, --count <n>': integer(`number of probes; default ${PING_COUNT}`),
      '--interval <seconds>': seconds('interval between probes', {
        minMs: MIN_PING_INTERVAL_MS,
        maxMs: MAX_PING_INTERVAL_MS,
      }),
      '--timeout <seconds>': seconds('deadline for the connection, and for each response', {
        minMs: 1,
        maxMs: MAX_PING_TIMEOUT_MS,
      }),
      '--until-direct': `continue until no relay is needed, for at most ${MAX_UNTIL_DIRECT} probes or --count`,
      '--no-relay': 'fail instead of using a relay',
    },
    run: ping,
    aids: 'whole',
    text: pingSummary,
    quiet: ({ rtt_ms, path }) => (rtt_ms === null ? 'none' : `${path} ${rtt_ms.avg}`),
    fails: ({ received, is_relayed }, { until_direct }) => {
      if (received === 0) return 'No probe was answered.';
      return until_direct === true && is_relayed && 'There is no direct path yet.';
    },
  });
}
