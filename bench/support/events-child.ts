/** The server process of the event benchmark: an event log on disk, its streams over HTTP, and an emitter. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventLog } from '../../src/capabilities/events/event-log.ts';
import { EventStreams } from '../../src/capabilities/events/event-streams.ts';
import { systemClock } from '../../src/foundation/clock.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { EventStore } from '../../src/foundation/store/events.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { eventStreams } from '../../src/operations/events.ts';
import { eventStreamHandlers } from '../../src/operations/handlers/events.ts';
import { bindStreams } from '../../src/operations/handlers/exchange.ts';
import { RestServer } from '../../src/surfaces/rest/server.ts';

export interface EventsHello {
  readonly aid: string;
  readonly port: number;
}

/** The parent's request: a number of events, spread evenly over a time. */
export interface EmitOrder {
  readonly events: number;
  readonly ms: number;
}

const aid = nativeAid(new Uint8Array(32).fill(1));

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svcd-bench-'));
  process.once('disconnect', () => {
    rmSync(directory, { recursive: true, force: true });
    process.exit(0);
  });
  const store = Store.open(join(directory, 'svcd.db'), MIGRATIONS);
  const log = new EventLog(new EventStore(store), systemClock, silentLog);
  const streams = new EventStreams(log, () => ({}), systemClock, silentLog);
  await streams.start();
  const server = new RestServer(
    { apiAddr: '127.0.0.1:0', requireLocalToken: false, version: '0' },
    {
      operations: [],
      streams: bindStreams(
        eventStreams,
        eventStreamHandlers({ streams, nodeStreams: streams, requireAgent: (aid) => aid }),
      ),
      token: () => '',
      isServiceConnection: () => false,
      proofKey: new Uint8Array(32),
      metrics: [],
      clock: systemClock,
      log: silentLog,
    },
  );
  await server.start();
  process.on('message', ({ events, ms }: EmitOrder) => {
    const startedAt = performance.now();
    let emitted = 0;
    const timer = setInterval(() => {
      const due = Math.min(events, ((performance.now() - startedAt) / ms) * events);
      while (emitted < due) log.emit(aid, 'chat.received', { peer: aid, seq: ++emitted });
      if (emitted === events) clearInterval(timer);
    }, 5);
  });
  process.send?.({ aid, port: server.address.port } satisfies EventsHello);
}

if (process.send !== undefined) await main();
