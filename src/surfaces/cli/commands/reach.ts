/** `svc links`, `svc peers`, `svc netcheck`, `svc ping`: how this node reaches others and is reached. */
import {
  MAX_PING_INTERVAL_MS,
  MAX_PING_TIMEOUT_MS,
  MIN_PING_INTERVAL_MS,
  PING_COUNT,
  TRAFFIC_HOURS,
} from '../../../foundation/domain/reach.ts';
import type { CommandGroup } from '../command-group.ts';
import { MAX_UNTIL_DIRECT, ping } from '../ping.ts';
import { checkedAgentText, checkedText, linksText, peersText, pingSummary, trafficText } from '../reach-text.ts';
import { integer, seconds } from '../takes.ts';

export function reachCommands(svc: CommandGroup): void {
  svc.call('links', 'show the connections with other nodes, and by which path they go', {
    examples: ['svc links', "svc links --json | jq -r '.links[] | select(.is_relayed) | .node'"],
    operation: 'nodeLinks',
    watch: true,
    text: ({ links }) => linksText(links),
    quiet: ({ links }) => links.map(({ node }) => node).join('\n'),
  });
  svc.call('peers', 'show the nodes that this one knows', {
    examples: ['svc peers', 'svc peers --quiet | wc -l'],
    operation: 'nodePeers',
    watch: true,
    text: peersText,
    quiet: ({ peers }) => peers.map(({ address }) => address).join('\n'),
  });
  svc.call('traffic', 'show what went through this node, minute by minute', {
    examples: ['svc traffic', 'svc traffic --hours 1 --json'],
    takes: { '--hours <n>': integer(`so many; ${TRAFFIC_HOURS} where it is left out`) },
    operation: 'nodeTraffic',
    watch: true,
    text: trafficText,
    quiet: ({ samples }) => samples.map(({ at, bytes_up, bytes_down }) => `${at} ${bytes_up} ${bytes_down}`).join('\n'),
  });
  svc.run('netcheck', 'show what stands between this node and others, or how an agent would be reached', {
    examples: ['svc netcheck', 'svc netcheck aid1…'],
    takes: { '[aid]': 'an agent: what would be tried to reach it, in which order' },
    progress: 'Looking',
    run: async ({ client }, { aid }) =>
      aid === undefined
        ? { node: await client.netcheck(), agent: null }
        : { node: null, agent: await client.netcheckAgent({ aid }) },
    text: ({ node, agent }) => (node === null ? checkedAgentText(agent) : checkedText(node)),
    quiet: ({ node, agent }) => (node === null ? (agent.connection?.path ?? 'none') : node.nat_type_label),
    json: ({ node, agent }) => node ?? agent,
  });
  svc.run('ping <aid>', 'measure the way to an agent: path, round trip, loss, and why it is not direct', {
    examples: [
      'svc ping aid1…',
      'svc ping bob --until-direct',
      'svc ping bob -c 10 --interval 0.2 --json | jq .rtt_ms.avg',
    ],
    takes: {
      '-c, --count <n>': integer(`so many probes; ${PING_COUNT} where it is left out`),
      '--interval <seconds>': seconds('from one probe to the next', {
        minMs: MIN_PING_INTERVAL_MS,
        maxMs: MAX_PING_INTERVAL_MS,
      }),
      '--timeout <seconds>': seconds('wait so long for the connection, and for each answer', {
        minMs: 1,
        maxMs: MAX_PING_TIMEOUT_MS,
      }),
      '--until-direct': `go on until no relay is needed, for at most ${MAX_UNTIL_DIRECT} probes or --count`,
      '--no-relay': 'fail rather than go through a relay',
    },
    run: ping,
    aids: 'whole',
    text: pingSummary,
    quiet: ({ rtt_ms, path }) => (rtt_ms === null ? 'none' : `${path} ${rtt_ms.avg}`),
    fails: ({ received, is_relayed }, { until_direct }) => {
      if (received === 0) return 'No probe was answered.';
      return until_direct === true && is_relayed && 'There is no direct way yet.';
    },
  });
}
