/** The frames of tunnel connections. */
import { FrameReader, lastFrame, lossyFrame, receivedFrame } from '../../../src/capabilities/tunnels/frames.ts';
import { refusal, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const HELLO = Buffer.from('hello');

export const TUNNEL_SEEDS: readonly Uint8Array[] = [
  Buffer.concat([Buffer.of(1, 0, 0, 5), HELLO, receivedFrame(1), lastFrame()]),
  Buffer.concat([receivedFrame(0), lossyFrame(), Buffer.of(1, 0, 0, 10), HELLO, HELLO, lastFrame(), receivedFrame(2)]),
].map((bytes) => new Uint8Array(bytes));

/** The result of a connection: its bytes, and the other frames with their offsets. */
function framesIn(pieces: readonly Uint8Array[]): string {
  const bytes: Buffer[] = [];
  const others: string[] = [];
  const at = (): number => bytes.reduce((sum, { length }) => sum + length, 0);
  const reader = new FrameReader({
    onData: (piece) => void bytes.push(piece),
    onAck: (received) => void others.push(`${at()} ${received}`),
    onEnd: () => void others.push(`${at()} end`),
    onLossy: () => void others.push(`${at()} lossy`),
  });
  let refused: string | null = null;
  try {
    for (const piece of pieces) reader.feed(Buffer.from(piece));
  } catch (error) {
    refused = refusal(error, ['protocol_error']);
  }
  return `${refused} ${Buffer.concat(bytes).toString('hex')} ${others.join()}`;
}

const frames: FuzzTarget = {
  name: 'tunnel-frames',
  inputs: 5000,
  edit: () => null,
  prepare: () => ({
    seeds: TUNNEL_SEEDS,
    run: (input) => {
      const expected = framesIn([input]);
      if (framesIn(splitInput(input)) !== expected) throw violation('the split of the bytes changes the result', input);
      const [refused = '', bytes = '', others = ''] = expected.split(' ');
      return `${refused} ${Math.ceil(Math.log2(bytes.length + 1))} ${others.split(',').length}`;
    },
  }),
};

export const tunnelTargets: readonly FuzzTarget[] = [frames];
