/** Bulk lanes over real local sockets. */
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import type { Path } from '../../src/network/transport/path.ts';
import type { BulkStreams, OfferedBulkStream, TakenBulkStream } from '../../src/network/transport/types.ts';
import { UdpLane } from '../../src/network/transport/udp-lane/udp-lane.ts';
import { UdpLanes } from '../../src/network/transport/udp-lane/udp-lanes.ts';
import { type UdpSocket, udxSockets } from '../../src/network/transport/udp-socket.ts';

const HOST = '127.0.0.1';

/** A node without free lanes. */
export const NO_LANES: BulkStreams = { offerBytes: 38, answerBytes: 6, offer: () => null, take: () => null };

/** The lanes of a node on its own socket. */
export class TestLanes implements BulkStreams {
  readonly lanes: UdpLanes;
  readonly socket: UdpSocket;
  /** Lanes opened by an offer. */
  readonly opened: UdpLane[] = [];

  private constructor(knownPort: boolean, clock: Clock) {
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
      outerPort: () => (knownPort ? (socket.address()?.port ?? 0) : 0),
    });
  }

  /** @param knownPort false if its external port cannot be predicted */
  static async open(knownPort = true, clock: Clock = systemClock): Promise<TestLanes> {
    return new TestLanes(knownPort, clock);
  }

  get answerBytes(): number {
    return this.lanes.answerBytes;
  }

  get offerBytes(): number {
    return this.lanes.offerBytes;
  }

  take(offer: Uint8Array, path: Path, signal: AbortSignal): TakenBulkStream | null {
    return this.lanes.take(offer, path, signal);
  }

  offer(path: Path): OfferedBulkStream | null {
    const offered = this.lanes.offer(path);
    if (offered === null) return null;
    const answered: OfferedBulkStream['answered'] = async (answer, signal) => {
      const lane = await offered.answered(answer, signal);
      if (lane instanceof UdpLane) this.opened.push(lane);
      return lane;
    };
    return { ...offered, answered };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lanes.stop();
    await this.socket.close();
  }
}
