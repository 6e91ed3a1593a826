/** Frames on chat links. */
import { isDeepStrictEqual } from 'node:util';
import { ChatFrameReader, encodeFrame, type Frame, isFileName } from '../../../src/capabilities/chat/wire.ts';
import { editCbor, editFrames } from '../engine/cbor.ts';
import { reasonOf, shapeOf, violation } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

export const CHAT_SEEDS: readonly Uint8Array[] = [
  ...vectorBytes('chat', 'frames.*.frame_hex'),
  new Uint8Array(Buffer.concat(vectorBytes('chat', 'conversation.0.*.frame_hex'))),
].map((frames) => new Uint8Array(Buffer.concat([Uint8Array.of(1), frames])));

export const editChat = editFrames(4, 1, editCbor);

interface Read {
  readonly frames: readonly Frame[];
  readonly error: string | null;
}

function read(pieces: readonly Uint8Array[]): Read {
  const reader = new ChatFrameReader();
  const frames: Frame[] = [];
  try {
    for (const piece of pieces) frames.push(...reader.take(piece));
    return { frames, error: null };
  } catch (error) {
    if (error instanceof RangeError) return { frames, error: reasonOf(error) };
    throw error;
  }
}

const frames: FuzzTarget = {
  name: 'chat-frames',
  inputs: 4000,
  edit: editChat,
  prepare: () => ({
    seeds: CHAT_SEEDS,
    run: (input) => {
      const inPieces = read(splitInput(input));
      const expected = read([input]);
      if (inPieces.error === null && expected.error === null && !isDeepStrictEqual(expected, inPieces))
        throw violation('the split of the bytes changes the decoded frames', input);
      if ((inPieces.error === null) !== (expected.error === null))
        throw violation('the split of the bytes changes whether they are accepted', input);
      const encoded = Buffer.concat([Uint8Array.of(1), ...inPieces.frames.map(encodeFrame)]);
      if (!isDeepStrictEqual(read([encoded]).frames, inPieces.frames))
        throw violation('frames decode to other values', input);
      for (const frame of inPieces.frames)
        if (frame.kind === 'message' && frame.content.file !== null && !isFileName(frame.content.file.name))
          throw violation('a file name is a path', input);
      return `${inPieces.error} ${shapeOf(inPieces.frames)}`;
    },
  }),
};

export const chatTargets: readonly FuzzTarget[] = [frames];
