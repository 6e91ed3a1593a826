/** Runs a query again after each event. A separate file, because the published types must not name `CallOptions`. */
import type { CallOptions } from '../../operations/client.ts';
import { followEvents } from '../../operations/event-client.ts';
import type { SvcApi } from './api.ts';
import type { DaemonOptions } from './place.ts';

/**
 * Runs `query` now and after each event of the given types, and yields its results. Events between a run and the next
 * wait are not missed: the wait starts at the position of the event log before the run.
 * @throws SvcError errors of the daemon. Ends without an error if the signal aborts
 */
export async function* rerunAfterEvents<T>(
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
  query: (call: CallOptions) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const end = new AbortController();
  const ended = signal === undefined ? end.signal : AbortSignal.any([signal, end.signal]);
  const call = { signal: ended };
  try {
    const { last_seq: after } = await api.eventsPoll({ aid }, call);
    yield* query(call);
    for await (const _ of followEvents(client, { aid, types, after, signal: ended })) yield* query(call);
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    end.abort();
  }
}
