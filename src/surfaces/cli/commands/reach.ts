/** `svc links`, `svc peers`, `svc netcheck`, `svc ping`: how this node reaches others, and how others reach it. */

import { setTimeout as pause } from 'node:timers/promises';
import { cutOffText } from '../../../foundation/domain/exit.ts';
import {
  MAX_PING_INTERVAL_MS,
  MAX_PING_TIMEOUT_MS,
  MIN_PING_INTERVAL_MS,
  PING_COUNT,
  PING_INTERVAL_MS,
  TRAFFIC_HOURS,
} from '../../../foundation/domain/reach.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { integer, seconds } from '../options.ts';
import {
  agentNetcheckText,
  linksText,
  netcheckText,
  peersText,
  pingSummary,
  rttText,
  trafficText,
} from '../reach-text.ts';
import { safeLine } from '../text.ts';

// An interactive ping: one request per probe, so that each response is shown when it arrives.

/** Default number of probes with --until-direct. */
const MAX_UNTIL_DIRECT = 60;

/** Errors of a node that was reachable before. */
const UNREACHED: ReadonlySet<string> = new Set(['connect_failed', 'relay_required', 'timeout']);

type Answer = AnswerOf<'pingAgent'>;

interface PingTyped {
  readonly aid: string;
  readonly count: number | undefined;
  readonly interval: number | undefined;
  readonly timeout: number | undefined;
  readonly until_direct: true | undefined;
  readonly relay: boolean;
}

/** Combines the results of single probes. */
function merged(answers: readonly Answer[]): Answer | undefined {
  const last = answers.at(-1);
  if (last === undefined) return undefined;
  const probes = answers.flatMap((answer) => answer.probes);
  const times = probes.flatMap(({ rtt_ms }) => rtt_ms ?? []);
  const avg = times.reduce((sum, one) => sum + one, 0) / times.length;
  const { path, is_relayed, remote_addr } = answers.findLast((answer) => answer.path !== null) ?? last;
  return {
    ...last,
    path,
    is_relayed,
    remote_addr,
    probes,
    sent: probes.length,
    received: times.length,
    rtt_ms:
      times.length === 0
        ? null
        : { min: Math.min(...times), avg: Math.round(avg * 1000) / 1000, max: Math.max(...times) },
  };
}

/**
 * The result of a probe to a node that stopped responding.
 * @throws the error if the node was not reached before, or for other errors
 */
function lost(error: unknown, before: Answer | undefined): Answer {
  if (before === undefined || !(error instanceof SvcError) || !UNREACHED.has(error.code)) throw error;
  const nothing = { path: null, rtt_ms: null, is_relayed: false };
  return { ...before, ...nothing, received: 0, probes: [nothing] };
}

function lineOf(seq: number, { probes, remote_addr }: Answer): string {
  const [probe] = probes;
  if (probe === undefined || probe.rtt_ms === null) return `${seq}: no response`;
  return `${seq}: ${rttText(probe.rtt_ms)}, ${probe.path ?? ''}${remote_addr === '' ? '' : `, ${remote_addr}`}`;
}

/**
 * Sends the probes and returns their combined result.
 * @throws SvcError as `POST /node/ping/{aid}` if the node is not reached
 */
async function ping(context: CliContext, typed: PingTyped): Promise<Answer | undefined> {
  const { until_direct, count = until_direct === true ? MAX_UNTIL_DIRECT : PING_COUNT } = typed;
  if (count < 1) throw new SvcError('invalid_request', { message: '--count must be at least 1.' });
  const { io, options, client } = context;
  const timed = typed.timeout === undefined ? {} : { timeout_ms: typed.timeout };
  const answers: Answer[] = [];
  while (answers.length < count) {
    if (answers.length > 0)
      await pause(
        typed.interval ?? PING_INTERVAL_MS,
        undefined,
        io.signal === undefined ? {} : { signal: io.signal },
      ).catch(() => {});
    if (io.signal?.aborted === true) break;
    const asked = client.pingAgent({ aid: typed.aid, count: 1, disable_relay: !typed.relay, ...timed });
    const answer = await asked.catch((error: unknown) => lost(error, answers.at(-1)));
    answers.push(answer);
    if (options.json !== true && options.quiet !== true)
      io.stdout.write(`${safeLine(lineOf(answers.length, answer))}\n`);
    if (until_direct === true && answer.received > 0 && !answer.is_relayed) break;
  }
  return merged(answers);
}

export function reachCommands(svc: CommandGroup): void {
  svc.call('nodeLinks', 'links', 'list the connections to other nodes and their paths', {
    examples: ['svc links', "svc links --json | jq -r '.links[] | select(.is_relayed) | .node'"],
    watch: true,
    text: ({ links }) => linksText(links),
    quiet: ({ links }) => links.map(({ node }) => node).join('\n'),
  });
  svc.call('nodePeers', 'peers', 'list the known nodes', {
    examples: ['svc peers', 'svc peers --quiet | wc -l'],
    watch: true,
    text: peersText,
    quiet: ({ peers }) => peers.map(({ address }) => address).join('\n'),
  });
  svc.call('nodeTraffic', 'traffic --hours <n>', 'show the traffic of this node, minute by minute', {
    examples: ['svc traffic', 'svc traffic --hours 1 --json'],
    help: { hours: `number of hours; default ${TRAFFIC_HOURS}` },
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
    fails: ({ node }) => node !== null && (cutOffText(node.exit) ?? false),
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
