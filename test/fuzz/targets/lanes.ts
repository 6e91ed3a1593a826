/** A tunnel connection, and the packets and records of lanes. */
import { TunnelConnection } from '../../../src/capabilities/tunnels/connection.ts';
import {
  BULK_SECRET_BYTES,
  laneKeys,
  RecordOpener,
  RecordSealer,
} from '../../../src/network/transport/sealed-records.ts';
import { decodeUdxPacket, PacketWindow } from '../../../src/network/transport/udp-lane/lane-entrance.ts';
import { linkEnds } from '../../support/link-ends.ts';
import { TestClock } from '../../support/test-clock.ts';
import { testSide } from '../../support/tunnel-pair.ts';
import { refusal, violation } from '../engine/properties.ts';
import { splitInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';
import { TUNNEL_SEEDS } from './tunnels.ts';

/** Event loop turns until all effects are done. */
const TURNS = 12;
const HOLDER = { node: 'peer', source: '192.0.2.1', named: false };

/** A tunnel connection whose remote side sends any frames, on two links in turn. The first byte: does it read, write, move? */
const connection: FuzzTarget = {
  name: 'tunnel-connection',
  inputs: 800,
  edit: () => null,
  prepare: () => ({
    seeds: TUNNEL_SEEDS.flatMap((seed) => [0, 1, 2, 4, 5, 6, 7].map((first) => Uint8Array.of(first, ...seed))),
    run: async (input) => {
      const clock = new TestClock();
      const first = input[0] ?? 0;
      const side = { ...testSide(clock), lost: () => true };
      const [[near, far], [nextNear, nextFar]] = [linkEnds(), linkEnds()];
      const tunnel = new TunnelConnection(far, HOLDER, side);
      if ((first & 1) !== 0) tunnel.resume();
      if ((first & 2) !== 0) tunnel.write(Buffer.from('what we say'));
      let received = 0;
      for (const end of [near, nextNear]) end.on('data', (chunk: Buffer) => (received += chunk.length));
      for (const [i, piece] of splitInput(input.subarray(1)).entries()) {
        if ((first & 4) !== 0 && i === 1) tunnel.attach(nextFar);
        (i === 0 || (first & 4) === 0 ? near : nextNear).write(piece);
      }
      for (let turn = 0; turn < TURNS; turn++) {
        clock.advance(10);
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
      const { destroyed } = tunnel;
      tunnel.destroy();
      for (const end of [near, far, nextNear, nextFar]) end.destroy();
      if (side.kept.used !== 0) throw violation('bytes are kept after the end', input);
      if (clock.timers !== 0) throw violation('a timer is left', input);
      return `${destroyed} ${Math.ceil(Math.log2(received + 1))}`;
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

export const laneTargets: readonly FuzzTarget[] = [connection, packets, records];
