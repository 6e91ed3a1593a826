/**
 * Bulk lanes of all kinds: over UDP, and over TLS if either side borrows its port. A lane over TLS meets at the helper
 * of the borrowing side (docs/protocol-tunnels.md, step 14), so it needs no QUIC inside TCP.
 */

import { hkdfSync, randomBytes } from 'node:crypto';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortable } from '../../../foundation/deadline.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { awakeTimeout } from '../../../foundation/stall.ts';
import type { HelperTarget } from '../borrowing.ts';
import type { Path } from '../path.ts';
import type { LanePlace, LaneRole, LaneRoom } from '../sealed-lane.ts';
import { BULK_SECRET_BYTES, decodeLaneOffer, encodeLaneOffer, laneKeys } from '../sealed-records.ts';
import type { BulkOptions, BulkStream, BulkStreams, OfferedBulkStream, TakenBulkStream } from '../types.ts';
import { mayDialPort } from '../udp-socket.ts';
import type { UdpOverTls } from './client.ts';
import { TlsLaneCarrier } from './lane-carrier.ts';
import { TLS_TOKEN_BYTES } from './wire.ts';

/** Timeout for opening a lane over TLS, milliseconds. */
export const TLS_LANE_TIMEOUT_MS = 10_000;

/** The meeting place of a lane: over UDP, at the helper of the caller, or at the helper of the called side. */
const MEETING = { udp: 0, atCaller: 1, atCalled: 2 } as const;
/** The meeting and a TCP port. */
const MEETING_BYTES = 3;

interface TlsLanesDependencies {
  readonly clock: Clock;
  /** Lanes over UDP. They share their room with those over TLS. */
  readonly udp: LaneRoom;
  readonly tls: UdpOverTls;
  /** False if `disable_relay` excludes helpers. */
  readonly isAllowed: () => boolean;
  /** The local address of a port that this node lends; other addresses are returned unchanged. */
  readonly localLent: (address: Address) => Address;
}

function head(meeting: number, port: number): Buffer {
  const bytes = Buffer.alloc(MEETING_BYTES);
  bytes.writeUInt8(meeting);
  bytes.writeUInt16BE(port, 1);
  return bytes;
}

/** The token with which both ends find each other. It does not reveal the secret. */
function tokenOf(secret: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(), 'svcd bulk lane 1 at a helper', TLS_TOKEN_BYTES));
}

export class TlsLanes implements BulkStreams {
  readonly #deps: TlsLanesDependencies;
  readonly offerBytes: number;
  readonly answerBytes: number;

  constructor(dependencies: TlsLanesDependencies) {
    this.#deps = dependencies;
    this.offerBytes = MEETING_BYTES + dependencies.udp.offerBytes;
    this.answerBytes = MEETING_BYTES + dependencies.udp.answerBytes;
  }

  stats(): ReturnType<LaneRoom['stats']> {
    return this.#deps.udp.stats();
  }

  offer(path: Path, options: BulkOptions = {}): OfferedBulkStream | null {
    // protocol-tunnels.md, step 13
    const here = this.#meetingHere(path);
    const overUdp = here === null ? this.#deps.udp.offer(path, options) : null;
    if (here === null && overUdp === null) return null;
    const first = here === null ? head(MEETING.udp, 0) : head(MEETING.atCaller, here.port);
    const fresh = { id: 0, port: 0, secret: new Uint8Array(randomBytes(BULK_SECRET_BYTES)) };
    const rest = overUdp?.offer ?? encodeLaneOffer(fresh);
    const { secret } = decodeLaneOffer(rest);
    return {
      offer: Buffer.concat([first, rest]),
      answered: async (answer, signal) => {
        const [meeting, port] = [answer[0], Buffer.from(answer).readUInt16BE(1)];
        if (meeting === MEETING.udp && overUdp !== null)
          return await overUdp.answered(answer.subarray(MEETING_BYTES), signal);
        overUdp?.cancel();
        const target =
          meeting === MEETING.atCaller ? here : meeting === MEETING.atCalled ? this.#meetingThere(path, port) : null;
        const place = target === null ? null : this.#deps.udp.reserve(path.source, 'offered', options);
        if (target === null || place === null) throw noLane();
        return await this.#meet(target, place, secret, 'offered', signal);
      },
      cancel: () => overUdp?.cancel(),
    };
  }

  take(offer: Uint8Array, path: Path, signal: AbortSignal, options: BulkOptions = {}): TakenBulkStream | null {
    const [meeting, port] = [offer[0], Buffer.from(offer).readUInt16BE(1)];
    const rest = offer.subarray(MEETING_BYTES);
    const { secret } = decodeLaneOffer(rest);
    const here = this.#meetingHere(path);
    if (meeting === MEETING.udp && here === null) {
      const taken = this.#deps.udp.take(rest, path, signal, options);
      return taken === null ? null : { ...taken, answer: Buffer.concat([head(MEETING.udp, 0), taken.answer]) };
    }
    const target = meeting === MEETING.atCaller ? this.#meetingThere(path, port) : here;
    const place = target === null ? null : this.#deps.udp.reserve(path.source, 'took', options);
    if (target === null || place === null) return null;
    const first = meeting === MEETING.atCaller ? head(MEETING.atCaller, 0) : head(MEETING.atCalled, target.port);
    return {
      answer: Buffer.concat([first, new Uint8Array(this.#deps.udp.answerBytes)]),
      stream: this.#meet(target, place, secret, 'took', signal),
    };
  }

  /** The helper of this node, if the path leads over it. */
  #meetingHere({ kind }: Path): HelperTarget | null {
    const { session } = this.#deps.tls;
    return kind !== 'tls' || session === null ? null : { ...session.target, nodeKey: session.hello.nodeKey };
  }

  /** The helper of the other node: it lends the port to which this node sends. */
  #meetingThere({ remote }: Path, port: number): HelperTarget | null {
    const { isAllowed, localLent } = this.#deps;
    return isAllowed() && mayDialPort(port) ? { host: localLent(remote).host, port } : null;
  }

  async #meet(
    target: HelperTarget,
    place: LanePlace,
    secret: Uint8Array,
    role: LaneRole,
    signal: AbortSignal,
  ): Promise<BulkStream> {
    using limit = awakeTimeout(this.#deps.clock, TLS_LANE_TIMEOUT_MS, signal);
    try {
      const lane = await this.#deps.tls
        .openLaneEnd(target, tokenOf(secret), limit.signal, (socket) => {
          const made = place.lane(new TlsLaneCarrier(socket), laneKeys(secret, role === 'offered'));
          made.greet();
          return made;
        })
        .catch((error: unknown) => {
          place.leave();
          throw error;
        });
      try {
        await abortable(lane.met, limit.signal);
      } catch (error) {
        lane.destroy();
        throw error;
      }
      return lane;
    } catch (cause) {
      if (signal.aborted) throw cause;
      throw noLane(cause);
    }
  }
}

function noLane(cause?: unknown): SvcError {
  return new SvcError('connect_failed', { message: 'Could not open a lane for bulk data.', cause });
}
