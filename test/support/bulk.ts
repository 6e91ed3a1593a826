/** Bulk lanes over real local sockets. */
import { systemClock } from '../../src/foundation/clock.ts';
import type { Path } from '../../src/network/transport/path.ts';
import type { UdpLane } from '../../src/network/transport/udp-lane/udp-lane.ts';
import { type OfferedLane, UdpLanes } from '../../src/network/transport/udp-lane/udp-lanes.ts';
import { type UdpSocket, udxSockets } from '../../src/network/transport/udp-socket.ts';

const HOST = '127.0.0.1';

/** A node without free lanes. */
export const NO_LANES = { offer: () => null, take: () => null };

/** The lanes of a node on its own socket. */
export class TestLanes {
  readonly lanes: UdpLanes;
  readonly socket: UdpSocket;
  /** Lanes opened by an offer. */
  readonly opened: UdpLane[] = [];

  private constructor(knownPort: boolean) {
    const createSocket = udxSockets();
    const socket = createSocket();
    socket.bind(0, HOST);
    this.socket = socket;
    this.lanes = new UdpLanes({
      clock: systemClock,
      records: {
        openSocket: socket,
        plainSocket: createSocket,
      },
      outerPort: () => (knownPort ? (socket.address()?.port ?? 0) : 0),
    });
  }

  /** @param knownPort false if its external port cannot be predicted */
  static async open(knownPort = true): Promise<TestLanes> {
    return new TestLanes(knownPort);
  }

  offer(path: Path): OfferedLane | null {
    const offered = this.lanes.offer(path);
    if (offered === null) return null;
    const answered: OfferedLane['answered'] = async (answer, signal) => {
      const lane = await offered.answered(answer, signal);
      this.opened.push(lane);
      return lane;
    };
    return { ...offered, answered };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lanes.stop();
    await this.socket.close();
  }
}
