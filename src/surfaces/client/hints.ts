/** Events of an agent as a bell: somebody looks again whenever it rings. */
import type { CallOptions } from '../../operations/client.ts';
import { followEvents } from '../../operations/event-client.ts';
import type { SvcApi } from './api.ts';
import type { DaemonOptions } from './place.ts';

/**
 * Runs `look` now and after each event of the given kinds, and gives what it finds. Nothing that comes between a look
 * and the wait for the next event is missed: the wait begins where the log of events stood before the look.
 * @throws SvcError what the daemon answers; ends without one where the signal says so
 */
export async function* lookAgain<T>(
  {
    api,
    client,
    aid,
    types,
    signal,
  }: {
    readonly api: SvcApi;
    readonly client: DaemonOptions;
    readonly aid: string;
    readonly types: string;
    readonly signal: AbortSignal | undefined;
  },
  look: (call: CallOptions) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const end = new AbortController();
  const ended = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal]);
  const call = { signal: ended };
  try {
    const { last_seq: after } = await api.eventsPoll({ aid }, call);
    yield* look(call);
    for await (const _ of followEvents(client, { aid, types, after, signal: ended })) yield* look(call);
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    end.abort();
  }
}
