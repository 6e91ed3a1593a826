/** "Are you there?" over a connection that stands: one stream, answered with one byte by any node that is. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { patience } from '../../foundation/stall.ts';
import type { Path } from '../path.ts';
import type { QuicStream } from '../quic/types.ts';
import { type NodeSession, openStreamWithin } from './node-session.ts';
import { shareOf } from './source.ts';
import { STATUS } from './status.ts';
import { KIND, MAX_LIMITED_NODES, type StreamHandler } from './stream-dispatcher.ts';
import { endWith, readExactly } from './wire.ts';

/** Time for the answer to a probe, milliseconds. */
export const ANSWERED_MS = 5_000;
/** Probes of one source that are answered a second, and at once; more are refused, which is an answer too. */
export const PROBES_PER_S = 20;
export const PROBES_BURST = 100;

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
  using limit = patience(clock, ANSWERED_MS, signal);
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

/** Answers the probes of other nodes, within limits: by their source, since a node key costs nothing. */
export function probeAnswers({ clock }: { readonly clock: Clock }): StreamHandler {
  const rate = new RateLimiter({ perSecond: PROBES_PER_S, burst: PROBES_BURST, maxKeys: MAX_LIMITED_NODES }, { clock });
  return async (stream: QuicStream, { connection }) => {
    const source = shareOf(connection.path.source);
    if (source !== null && !rate.take(source)) throw new SvcError('rate_limited');
    endWith(stream, STATUS.ok, clock);
  };
}
