/** An interactive ping: one request per probe, so that each response is shown when it arrives. */
import { setTimeout as pause } from 'node:timers/promises';
import { PING_COUNT, PING_INTERVAL_MS } from '../../foundation/domain/reach.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { AnswerOf } from './client.ts';
import type { CliContext } from './context.ts';
import { rttText } from './reach-text.ts';
import { safeLine } from './text.ts';

/** Default number of probes with --until-direct. */
export const MAX_UNTIL_DIRECT = 60;

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
export async function ping(context: CliContext, typed: PingTyped): Promise<Answer | undefined> {
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
