/** "Are you there?" over a connection that stands: one stream, answered with one byte by any node that is. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Rate, RateQuota } from '../../foundation/rate-limit.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { KnownNodes } from '../known-nodes.ts';
import { sessionHolder } from '../links/holder.ts';
import { STATUS } from '../links/status.ts';
import { KIND, type StreamHandler } from '../links/stream-dispatcher.ts';
import { endWith, readExactly } from '../links/wire.ts';
import type { Path } from '../transport/path.ts';
import type { Stream } from '../transport/types.ts';
import { type NodeSession, openStreamWithin } from './session.ts';

/** Time for the answer to a probe, milliseconds. */
export const ANSWERED_MS = 5_000;
/** Probes of one node that are answered; more are refused, which is an answer too. */
export const PROBE_RATE: Rate = { perSecond: 20, burst: 100 };
/** The same of the strangers on one IPv4 address or IPv6 /64. */
export const PROBE_RATE_PER_SOURCE: Rate = { perSecond: 40, burst: 200 };
/** The same of those in one IPv4 /24 or IPv6 /48. */
export const PROBE_RATE_PER_NETWORK: Rate = { perSecond: 80, burst: 400 };
/** The same of all strangers. */
export const PROBE_RATE_OF_STRANGERS: Rate = { perSecond: 500, burst: 2000 };

/** What came back. */
export interface Probed {
  /** From the question to the answer, milliseconds with fractions: of the network and of both processes. */
  readonly rttMs: number;
  readonly path: Path;
}

/**
 * Asks the other node over a connection whether it is there. Whatever status it answers with, it is: so does one that
 * does not know the question, and one that we ask too often.
 * @throws SvcError `connect_failed` where the connection has ended; `timeout` after `ANSWERED_MS`, in which we could
 *   have heard it; `protocol_error` where it resets the stream; or the signal's reason
 */
export async function probe(session: NodeSession, clock: Clock, signal?: AbortSignal): Promise<Probed> {
  // protocol-links.md, step 17
  using limit = awakeTimeout(clock, ANSWERED_MS, signal);
  const stream = await openStreamWithin(session, limit.signal);
  try {
    // Not the time of day, which may be set meanwhile.
    const askedAt = performance.now();
    stream.end(Uint8Array.of(KIND.probe));
    await readExactly(stream, 1, limit.signal);
    return { rttMs: performance.now() - askedAt, path: session.connection.path };
  } catch (error) {
    const isLate = error instanceof SvcError && error.code === 'timeout';
    throw isLate ? new SvcError('timeout', { message: 'The other node does not answer.', cause: error }) : error;
  } finally {
    stream.destroy();
  }
}

interface ProbeAnswersDependencies {
  readonly clock: Clock;
  readonly known: Pick<KnownNodes, 'has'>;
}

/** Answers the probes of other nodes, within limits. */
export function probeAnswers({ clock, known }: ProbeAnswersDependencies): StreamHandler {
  const rate = new RateQuota(
    {
      perKey: PROBE_RATE,
      perSource: PROBE_RATE_PER_SOURCE,
      perNetwork: PROBE_RATE_PER_NETWORK,
      strangers: PROBE_RATE_OF_STRANGERS,
    },
    { clock },
  );
  return async (stream: Stream, session) => {
    if (!rate.take(sessionHolder(session, known))) throw new SvcError('rate_limited');
    endWith(stream, STATUS.ok, clock);
  };
}
