/** Bulk lanes over real local sockets. */
import type { Duplex } from 'node:stream';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { localPair } from '../../src/network/links/stream.ts';
import type { Path } from '../../src/network/transport/path.ts';
import { SealedLane } from '../../src/network/transport/sealed-lane.ts';
import { StreamError } from '../../src/network/transport/stream.ts';
import type {
  BulkOptions,
  BulkStream,
  BulkStreams,
  OfferedBulkStream,
  TakenBulkStream,
} from '../../src/network/transport/types.ts';
import { UdpLanes } from '../../src/network/transport/udp-lane/udp-lanes.ts';
import { type UdpSocket, udxSockets } from '../../src/network/transport/udp-socket.ts';

const HOST = '127.0.0.1';

/** A node without free lanes. */
export const NO_LANES: BulkStreams = { offerBytes: 38, answerBytes: 6, offer: () => null, take: () => null };

/** One end of an in-memory stream. Each side gets its own memory, as over a network. */
function bulkStream(end: Duplex): BulkStream {
  const push = end.push.bind(end);
  end.push = (chunk: unknown) => push(chunk instanceof Buffer ? Buffer.from(chunk) : chunk);
  return Object.assign(
    end.on('error', () => {}),
    { rtt: () => 1, received: () => 0, release: () => {} },
  );
}

/** In-memory lanes that two nodes share. */
export class MemoryLanes implements BulkStreams {
  readonly offerBytes = 1;
  readonly answerBytes = 1;
  /** Both ends of every lane. */
  readonly lanes: (readonly [BulkStream, BulkStream])[] = [];
  /** True if the side that asks never hears from the other. */
  isOneWay = false;

  offer(): OfferedBulkStream {
    const [near, far] = localPair();
    const id = this.lanes.push([bulkStream(near), bulkStream(far)]) - 1;
    const answered: OfferedBulkStream['answered'] = async () => {
      const lane = this.lanes[id]?.[0];
      if (lane !== undefined && !this.isOneWay) return lane;
      lane?.destroy();
      throw new SvcError('connect_failed');
    };
    return { offer: Uint8Array.of(id), answered, cancel: () => {} };
  }

  take(offer: Uint8Array): TakenBulkStream | null {
    const lane = this.lanes[offer[0] ?? -1]?.[1];
    return lane === undefined ? null : { answer: Uint8Array.of(1), stream: Promise.resolve(lane) };
  }

  /** Breaks the newest lane. Data in transit is lost, and both ends notice. */
  lose(): void {
    for (const end of this.lanes.at(-1) ?? []) end.destroy(new StreamError('connection_lost'));
  }
}

/** The lanes of a node on its own socket. */
export class TestLanes implements BulkStreams {
  readonly lanes: UdpLanes;
  readonly socket: UdpSocket;
  /** Lanes opened by an offer. */
  readonly opened: SealedLane[] = [];

  private constructor(outerPort: (port: number) => number, clock: Clock) {
    const createSocket = udxSockets();
    const socket = createSocket();
    socket.bind(0, HOST);
    this.socket = socket;
    this.lanes = new UdpLanes({
      clock,
      records: {
        openSocket: socket,
        plainSocket: createSocket,
      },
      outerPort: () => outerPort(socket.address()?.port ?? 0),
    });
  }

  /** @param knownPort false if its external port cannot be predicted */
  static async open(knownPort = true, clock: Clock = systemClock): Promise<TestLanes> {
    return new TestLanes((port) => (knownPort ? port : 0), clock);
  }

  /** @param outerPort the port at which others reach the socket */
  static behind(outerPort: () => number): TestLanes {
    return new TestLanes(outerPort, systemClock);
  }

  get answerBytes(): number {
    return this.lanes.answerBytes;
  }

  get offerBytes(): number {
    return this.lanes.offerBytes;
  }

  take(offer: Uint8Array, path: Path, signal: AbortSignal, options?: BulkOptions): TakenBulkStream | null {
    return this.lanes.take(offer, path, signal, options);
  }

  offer(path: Path, options?: BulkOptions): OfferedBulkStream | null {
    const offered = this.lanes.offer(path, options);
    if (offered === null) return null;
    const answered: OfferedBulkStream['answered'] = async (answer, signal) => {
      const lane = await offered.answered(answer, signal);
      if (lane instanceof SealedLane) this.opened.push(lane);
      return lane;
    };
    return { ...offered, answered };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lanes.stop();
    await this.socket.close();
  }
}
