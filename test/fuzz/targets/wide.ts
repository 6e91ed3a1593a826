/** A wide tunnel connection whose remote side sends any frames on any number of lanes; and the records of a lane. */
import type { Duplex } from 'node:stream';
import { WideStream } from '../../../src/capabilities/tunnels/wide/wide-stream.ts';
import { decodeUdxPacket, PacketWindow } from '../../../src/network/transport/udp-lane/lane-entrance.ts';
import {
  BULK_SECRET_BYTES,
  laneKeys,
  RecordOpener,
  RecordSealer,
} from '../../../src/network/transport/udp-lane/records.ts';
import { linkEnds } from '../../support/lanes.ts';
import { TestClock } from '../../support/test-clock.ts';
import { refusal, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { LANE_SEEDS } from './tunnels.ts';

/** Event loop turns until all effects are done. */
const TURNS = 12;
const MAX_LANES_HERE = 3;

/** The first byte: the number of lanes, whether the reader pauses, whether the local side writes. */
const wide: FuzzTarget = {
  name: 'wide-stream',
  inputs: 800,
  edit: () => null,
  prepare: () => ({
    seeds: LANE_SEEDS.flatMap((seed) => [0, 1, 2, 4, 6, 8, 13].map((first) => Uint8Array.of(first, ...seed))),
    run: async (input) => {
      const clock = new TestClock();
      const first = input[0] ?? 0;
      const lanes = Array.from({ length: 1 + (first % MAX_LANES_HERE) }, linkEnds);
      for (const end of lanes.flat()) end.on('error', () => {});
      const far = lanes.map(([, end]) => end);
      const [main, ...others] = far;
      if (main === undefined) return '';
      const stream: WideStream = new WideStream(main, { clock, widen: () => true });
      for (const lane of others) stream.add(lane);
      let read = 0;
      stream.on('data', (chunk: Buffer) => {
        read += chunk.length;
        if ((first & 4) !== 0) stream.pause();
      });
      if ((first & 8) !== 0) stream.end('what we say');
      let received = 0;
      const near: Duplex[] = lanes.map(([end]) => end.on('data', (chunk: Buffer) => (received += chunk.length)));
      for (const [i, piece] of splitInput(input.subarray(1)).entries()) near[i % near.length]?.write(piece);
      near.at(-1)?.end();
      for (let turn = 0; turn < TURNS; turn++) {
        clock.advance(10);
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      if (read > input.length) throw violation('more bytes were read than received', input);
      const outcome = `${stream.destroyed} ${Math.ceil(Math.log2(read + 1))} ${Math.ceil(Math.log2(received + 1))}`;
      stream.destroy();
      for (const end of lanes.flat()) end.destroy();
      return outcome;
    },
  }),
};

/** Packets of a lane, consecutively: each is a header and as many bytes of payload as its first byte states. */
const packets: FuzzTarget = {
  name: 'lane-packets',
  inputs: 3000,
  edit: () => null,
  prepare: () => ({
    seeds: [0, 1, 2, 4096, 2 ** 30].map((seq) => {
      const packet = Buffer.alloc(24);
      packet.set([255, 1, 1]);
      packet.writeUInt32LE(seq, 12);
      return new Uint8Array(Buffer.concat([packet, packet]));
    }),
    run: async (input) => {
      const window = new PacketWindow();
      let admitted = 0;
      for (let at = 0; at < input.length; at += 24) {
        const packet = decodeUdxPacket(input.subarray(at, at + 24));
        if (packet !== null && window.admit(packet)) admitted++;
      }
      if (window.waitingBytes < 0 || window.waitingBytes > admitted * (24 + 64))
        throw violation('bytes are miscounted', input);
      return `${admitted} ${Math.ceil(Math.log2(window.waitingBytes + 1))}`;
    },
  }),
};

const SECRET = new Uint8Array(BULK_SECRET_BYTES).fill(3);
/** Data of one side of a lane, in pieces. */
const DATA = ['', 'a', 'some more', 'x'.repeat(300)];

function sealedRecords(): Buffer {
  const sealer = new RecordSealer(laneKeys(SECRET, true).seal);
  return Buffer.concat([
    sealer.seal('hello'),
    ...DATA.map((text) => sealer.seal('data', Buffer.from(text))),
    sealer.seal('end'),
  ]);
}

/** Opened records are a prefix of the sealed ones, whatever the input changes. */
const records: FuzzTarget = {
  name: 'bulk-records',
  inputs: 5000,
  edit: () => null,
  prepare: () => ({
    seeds: [sealedRecords()],
    run: (input) => {
      const opener = new RecordOpener(laneKeys(SECRET, false).open);
      const opened: string[] = [];
      let outcome = 'whole';
      try {
        for (const piece of splitInput(input)) {
          for (const { kind, payload } of opener.feed(piece)) opened.push(`${kind} ${payload.toString('latin1')}`);
        }
      } catch (error) {
        outcome = refusal(error, ['protocol_error']);
      }
      const sent = ['hello ', ...DATA.map((text) => `data ${text}`), 'end '];
      if (opened.some((one, i) => one !== sent[i])) throw violation('a record opened that was not sealed', input);
      return `${opened.length} ${outcome}`;
    },
  }),
};

export const wideTargets: readonly FuzzTarget[] = [wide, packets, records];
