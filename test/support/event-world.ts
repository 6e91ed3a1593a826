/** An API with only event streams, over a real event log. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { EventLog } from '../../src/capabilities/events/event-log.ts';
import { EventStreams } from '../../src/capabilities/events/event-streams.ts';
import { EventWaits } from '../../src/capabilities/events/event-waits.ts';
import { NodeEvents } from '../../src/capabilities/events/node-events.ts';
import type { PendingView } from '../../src/capabilities/events/pending-counters.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { EventStore } from '../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { eventOperations, eventStreams, nodeEventOperations } from '../../src/operations/events.ts';
import { eventHandlers, eventStreamHandlers, nodeEventHandlers } from '../../src/operations/handlers/events.ts';
import { bindStreams } from '../../src/operations/handlers/exchange.ts';
import { toolHandlers } from '../../src/operations/handlers/tools.ts';
import { bind, type CallContext } from '../../src/operations/operation.ts';
import { ToolTable } from '../../src/operations/tool-call.ts';
import { toolOperations } from '../../src/operations/tools.ts';
import { startWorld } from '../surfaces/rest/support.ts';
import { newIdentity } from './identities.ts';
import { SseClient } from './sse.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const one = newIdentity().aid;
export const two = newIdentity().aid;
/** An agent that is not registered. */
export const unknown = newIdentity().aid;
const CONTEXT: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};

/** The log stores five events per agent. */
export async function eventWorld(t: TestContext, apiAddr = '127.0.0.1:0') {
  const store = Store.open(join(temporaryDirectory(t), 'svcd.db'), MIGRATIONS);
  const log = new EventLog(new EventStore(store, 5), systemClock, silentLog);
  const pending: PendingView = {};
  const streams = new EventStreams(log, () => pending, systemClock, silentLog);
  const requireAgent = (aid: Aid): Aid => {
    if (aid === unknown) throw new SvcError('not_found');
    return aid;
  };
  const nodeEvents = new NodeEvents(two, systemClock);
  const nodeStreams = new EventStreams(nodeEvents, () => ({}), systemClock, silentLog);
  const waits = new EventWaits(log, systemClock, silentLog);
  await waits.start();
  await streams.start();
  await nodeStreams.start();
  // Stopped before the server, which waits for open streams.
  t.after(() => Promise.all([waits.stop(), streams.stop(), nodeStreams.stop()]));
  const operations = bind(eventOperations, eventHandlers({ log, waits, requireAgent }));
  const tools = new ToolTable({ operations, pending: () => pending });
  const api = await startWorld(t, {
    apiAddr,
    operations: [
      ...bind(toolOperations, toolHandlers({ tools })),
      ...bind(nodeEventOperations, nodeEventHandlers({ events: nodeEvents })),
    ],
    streams: bindStreams(eventStreams, eventStreamHandlers({ streams, nodeStreams, requireAgent })),
  });
  const emit = (aid = one, count = 1): void => {
    for (let i = 0; i < count; i++) log.emit(aid, 'chat.received', { peer: two, seq: i });
  };
  const open = async (path: string, headers?: Record<string, string>): Promise<SseClient> => {
    const client = await SseClient.open(`${api.url}${path}`, headers);
    t.after(() => client.close());
    await client.until(({ frames }) => frames.length > 0);
    return client;
  };
  const [poll] = operations;
  assert.ok(poll !== undefined);
  return {
    api,
    nodeEvents,
    streams,
    waits,
    pending,
    emit,
    open,
    poll: (input: object) => poll.run({ ...input }, CONTEXT),
  };
}
