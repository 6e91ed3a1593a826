/** Bulk lanes behave like streams of a connection, except that a lane fails if its reader pauses. */
import type { TestContext } from 'node:test';
import { plainPath } from '../../../../src/network/transport/path.ts';
import type { BulkStream } from '../../../../src/network/transport/types.ts';
import { MAX_LANE_UNREAD_PER_SOURCE_BYTES } from '../../../../src/network/transport/udp-lane/udp-lanes.ts';
import { TestLanes } from '../../../support/bulk.ts';
import { type Late, streamConformance } from '../conformance.ts';
import { inbox, type StreamPair } from '../world.ts';

const PATH = { ...plainPath('direct', { host: '127.0.0.1', port: 4000 }), source: 'them' };
const NEVER = new AbortController().signal;

async function lanePair(t: TestContext, late?: Late): Promise<StreamPair<BulkStream>> {
  const [a, b] = await Promise.all([TestLanes.open(true, late?.clock), TestLanes.open(true, late?.clock)]);
  t.after(() => b[Symbol.asyncDispose]());
  t.after(() => a[Symbol.asyncDispose]());
  const streams = inbox<BulkStream>();
  const closed = Promise.withResolvers<void>();
  return {
    client: {
      async openStream() {
        const offered = a.lanes.offer(PATH);
        const taken = offered === null ? null : b.lanes.take(offered.offer, PATH, NEVER);
        if (offered === null || taken === null) throw new Error('no lane');
        const [ours, theirs] = await Promise.all([offered.answered(taken.answer, NEVER), taken.stream]);
        streams.push(theirs);
        return ours;
      },
      stats: () => ({ ...bytesOf(a), packetsSent: 0, packetsLost: 0 }),
      closed: closed.promise,
      close: () => void Promise.all([a.lanes.stop(), b.lanes.stop()]).then(() => closed.resolve()),
    },
    server: { closed: closed.promise },
    incoming: streams.next,
  };
}

function bytesOf({ lanes }: TestLanes): { readonly bytesSent: number; readonly bytesReceived: number } {
  const { sent, received } = lanes.stats();
  return { bytesSent: sent, bytesReceived: received };
}

streamConformance('bulk lanes', lanePair, {
  streams: 16,
  maxAheadBytes: MAX_LANE_UNREAD_PER_SOURCE_BYTES,
  unread: 'lost',
});
