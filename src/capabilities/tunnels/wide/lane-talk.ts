/**
 * How the two ends of a wide connection agree on a lane for bulk, on a link of its own: docs/protocol-tunnels.md, steps
 * 16 to 18. The link ends when they have met.
 */
import { SvcError } from '../../../foundation/errors.ts';
import type { LinkStream } from '../../../network/links/types.ts';
import { readExactly } from '../../../network/links/wire.ts';
import type { Path } from '../../../network/transport/path.ts';
import { BULK_SECRET_BYTES } from '../../../network/transport/udp-lane/records.ts';
import type { UdpLane } from '../../../network/transport/udp-lane/udp-lane.ts';
import type { LaneAnswer, LaneOffer, UdpLanes } from '../../../network/transport/udp-lane/udp-lanes.ts';

const ID_BYTES = 4;
const PORT_BYTES = 2;
const ANSWER_BYTES: number = ID_BYTES + PORT_BYTES;
const OFFER_BYTES: number = ANSWER_BYTES + BULK_SECRET_BYTES;

/** Says that no lane can be had: no lane has this name. */
const NO_LANE: LaneAnswer = { id: 0, port: 0 };

/** The name and the port of an end. */
export function encodeLaneAnswer({ id, port }: LaneAnswer): Uint8Array {
  const bytes = Buffer.alloc(ANSWER_BYTES);
  bytes.writeUInt32BE(id);
  bytes.writeUInt16BE(port, ID_BYTES);
  return bytes;
}

/** @param bytes `ANSWER_BYTES` at least; what follows is not looked at */
export function decodeLaneAnswer(bytes: Uint8Array): LaneAnswer {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { id: view.getUint32(0), port: view.getUint16(ID_BYTES) };
}

function encodeLaneOffer(offer: LaneOffer): Uint8Array {
  return Buffer.concat([encodeLaneAnswer(offer), offer.secret]);
}

function decodeLaneOffer(bytes: Uint8Array): LaneOffer {
  return { ...decodeLaneAnswer(bytes), secret: bytes.slice(ANSWER_BYTES) };
}

/** The path of a link to another node. */
function pathOf(link: LinkStream): Path | null {
  const { kind, remote, source } = link.path();
  return kind === 'local' || remote === null || source === null ? null : { kind, remote, source };
}

/**
 * Asks the called side for a lane, once the link has named the connection.
 * @throws SvcError `connect_failed` where none comes about, `protocol_error`, or the signal's reason
 */
export async function askForLane(
  link: LinkStream,
  lanes: Pick<UdpLanes, 'offer'>,
  signal: AbortSignal,
): Promise<UdpLane> {
  const path = pathOf(link);
  const offered = path === null ? null : lanes.offer(path);
  if (offered === null) throw new SvcError('connect_failed', { message: 'There is no room for another lane.' });
  try {
    link.write(encodeLaneOffer(offered.offer));
    const answer = decodeLaneAnswer(await readExactly(link, ANSWER_BYTES, signal));
    return await offered.answered(answer, signal);
  } catch (error) {
    offered.cancel();
    throw error;
  }
}

/**
 * Answers the calling side that asks for a lane; null where none can be had.
 * @throws SvcError as `askForLane`
 */
export async function answerForLane(
  link: LinkStream,
  lanes: Pick<UdpLanes, 'take'>,
  signal: AbortSignal,
): Promise<UdpLane | null> {
  const offer = decodeLaneOffer(await readExactly(link, OFFER_BYTES, signal));
  const path = pathOf(link);
  const taken = path === null ? null : lanes.take(offer, path, signal);
  link.write(encodeLaneAnswer(taken?.answer ?? NO_LANE));
  return taken === null ? null : await taken.lane;
}
