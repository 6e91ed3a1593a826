/** The lanes of wide tunnels, and the links of lasting ones. */
import { isDeepStrictEqual } from 'node:util';
import { FrameReader, lastFrame, receivedFrame } from '../../../src/capabilities/tunnels/lasting/frames.ts';
import {
  ackFrame,
  dataFrame,
  endFrame,
  FrameParser,
  type LaneFrame,
  MAX_PAYLOAD_BYTES,
  widerFrame,
} from '../../../src/capabilities/tunnels/wide/frames.ts';
import { MAX_FRAMES_AHEAD, Reassembly } from '../../../src/capabilities/tunnels/wide/reassembly.ts';
import { refusal, shapeOf, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const HELLO = Buffer.from('hello');

export const LANE_SEEDS: readonly Uint8Array[] = [
  Buffer.concat([dataFrame(0, [HELLO], 5), dataFrame(5, [HELLO, HELLO], 10), ackFrame(0, 65_536, 0), endFrame(15)]),
  Buffer.concat([dataFrame(5, [HELLO], 5), widerFrame(), dataFrame(0, [HELLO], 5), endFrame(10)]),
  Buffer.concat([ackFrame(0, 262_144, 0), widerFrame(), endFrame(0)]),
].map((bytes) => new Uint8Array(bytes));

export const LASTING_SEEDS: readonly Uint8Array[] = [
  Buffer.concat([Buffer.of(1, 0, 0, 5), HELLO, receivedFrame(1), lastFrame()]),
  Buffer.concat([receivedFrame(0), Buffer.of(1, 0, 0, 10), HELLO, HELLO, lastFrame(), receivedFrame(2)]),
].map((bytes) => new Uint8Array(bytes));

/** The result of a lasting connection: its bytes, and the other frames with their offsets. */
function lastingIn(pieces: readonly Uint8Array[]): string {
  const bytes: Buffer[] = [];
  const others: string[] = [];
  const at = (): number => bytes.reduce((sum, { length }) => sum + length, 0);
  const reader = new FrameReader({
    onData: (piece) => void bytes.push(piece),
    onAck: (received) => void others.push(`${at()} ${received}`),
    onEnd: () => void others.push(`${at()} end`),
  });
  let refused: string | null = null;
  try {
    for (const piece of pieces) reader.feed(Buffer.from(piece));
  } catch (error) {
    refused = refusal(error, ['protocol_error']);
  }
  return `${refused} ${Buffer.concat(bytes).toString('hex')} ${others.join()}`;
}

const lasting: FuzzTarget = {
  name: 'lasting-frames',
  inputs: 5000,
  edit: () => null,
  prepare: () => ({
    seeds: LASTING_SEEDS,
    run: (input) => {
      const expected = lastingIn([input]);
      if (lastingIn(splitInput(input)) !== expected)
        throw violation('the split of the bytes changes the result', input);
      const [refused = '', bytes = '', others = ''] = expected.split(' ');
      return `${refused} ${Math.ceil(Math.log2(bytes.length + 1))} ${others.split(',').length}`;
    },
  }),
};

function framesIn(pieces: readonly Uint8Array[]): { readonly frames: LaneFrame[]; readonly refused: string | null } {
  const parser = new FrameParser();
  const frames: LaneFrame[] = [];
  try {
    for (const piece of pieces) for (const frame of parser.feed(Buffer.from(piece))) frames.push(frame);
    return { frames, refused: null };
  } catch (error) {
    return { frames, refused: refusal(error, ['protocol_error']) };
  }
}

/** Puts frames in order, as a reader with a window of 256 bytes that grows as it reads. */
function reassemble(frames: readonly LaneFrame[]): string {
  const order = new Reassembly();
  let text = '';
  try {
    for (const frame of frames) {
      if (frame.kind === 'data') order.take(frame.offset, frame.payload, order.handed + 256);
      else if (frame.kind === 'end') order.finish(frame.offset);
      for (let next = order.next(); next !== null; next = order.next()) text += next.toString('latin1');
      if (text.length !== order.handed) throw violation('bytes were lost or repeated', text, order.handed);
    }
  } catch (error) {
    return refusal(error, ['protocol_error']);
  }
  return `${order.ended} ${order.whole} ${Math.min(text.length, MAX_FRAMES_AHEAD)}`;
}

const lanes: FuzzTarget = {
  name: 'lane-frames',
  inputs: 5000,
  edit: () => null,
  prepare: () => ({
    seeds: LANE_SEEDS,
    run: (input) => {
      const expected = framesIn([input]);
      if (!isDeepStrictEqual(framesIn(splitInput(input)), expected))
        throw violation('the split of the bytes changes the result', input);
      for (const frame of expected.frames)
        if (frame.kind === 'data' && (frame.payload.length === 0 || frame.payload.length > MAX_PAYLOAD_BYTES))
          throw violation('a payload is too long', input);
      return `${expected.refused} ${shapeOf(expected.frames)} ${reassemble(expected.frames)}`;
    },
  }),
};

export const tunnelTargets: readonly FuzzTarget[] = [lanes, lasting];
