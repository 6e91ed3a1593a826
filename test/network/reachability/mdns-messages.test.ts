import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DNS_TYPE,
  decodeAnnouncement,
  decodePacket,
  encodeAnnouncement,
  encodeQuestion,
  isServiceQuery,
} from '../../../src/network/reachability/mdns-messages.ts';

/** Packets of multicast-dns 7.2.5 for the same announcement and query: other nodes still use it. */
const ANNOUNCEMENT_OF_MULTICAST_DNS = Buffer.from(
  '000084000000000100000002055f73766364045f756470056c6f63616c00000c00010000007800231030323032303230323032303230323032055f' +
    '73766364045f756470056c6f63616c001030323032303230323032303230323032055f73766364045f756470056c6f63616c0000210001000000' +
    '78001e0000000010191030323032303230323032303230323032056c6f63616c001030323032303230323032303230323032055f73766364045f' +
    '756470056c6f63616c000010000100000078005e03763d31146e65743d30313031303130313031303130313031446b65793d3032303230323032' +
    '3032303230323032303230323032303230323032303230323032303230323032303230323032303230323032303230323032303230323032',
  'hex',
);
const QUESTION_OF_MULTICAST_DNS = Buffer.from(
  '000000000001000000000000055f73766364045f756470056c6f63616c00000c0001',
  'hex',
);
const ANNOUNCED = { network: new Uint8Array(8).fill(1), nodeKey: new Uint8Array(32).fill(2), port: 4121 };

function header(questions: number, answers = 0): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(questions, 4);
  bytes.writeUInt16BE(answers, 6);
  return bytes;
}

/** Counts the bytes that the decoder reads from a packet. */
function readsOf(packet: Uint8Array): { readonly reads: number; readonly decoded: ReturnType<typeof decodePacket> } {
  let reads = 0;
  const counted = new Proxy(packet, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof key === 'string' && /^\d+$/.test(key)) reads++;
      if (key !== 'subarray') return value;
      return (start: number, end: number): Uint8Array => {
        reads += end - start;
        return target.subarray(start, end);
      };
    },
  });
  return { decoded: decodePacket(counted), reads };
}

test('encoded packets equal the recorded packets of multicast-dns', () => {
  assert.deepEqual(Buffer.from(encodeAnnouncement(ANNOUNCED)), ANNOUNCEMENT_OF_MULTICAST_DNS);
  assert.deepEqual(Buffer.from(encodeQuestion()), QUESTION_OF_MULTICAST_DNS);
  const announcement = decodePacket(ANNOUNCEMENT_OF_MULTICAST_DNS);
  const found = announcement && decodeAnnouncement(announcement);
  assert.deepEqual(
    found && { ...found, network: Uint8Array.from(found.network), nodeKey: Uint8Array.from(found.nodeKey) },
    ANNOUNCED,
  );
  const question = decodePacket(QUESTION_OF_MULTICAST_DNS);
  assert.equal(question && isServiceQuery(question), true);
});

test('compressed names from other responders are decoded', () => {
  const service = Buffer.from('\u0005_svcd\u0004_udp\u0005local\u0000', 'latin1');
  const pointer = Buffer.from([0xc0, 12]);
  const question = (name: Buffer, type: number): Buffer => Buffer.concat([name, Buffer.from([0, type, 0, 1])]);
  const packet = Buffer.concat([
    header(2),
    question(service, DNS_TYPE.any),
    question(Buffer.concat([Buffer.from('\u0001x', 'latin1'), pointer]), DNS_TYPE.txt),
  ]);
  assert.deepEqual(decodePacket(packet)?.questions, [
    { name: '_svcd._udp.local', type: DNS_TYPE.any },
    { name: 'x._svcd._udp.local', type: DNS_TYPE.txt },
  ]);
});

test('malformed packets are rejected', () => {
  const question = Buffer.concat([header(1), Buffer.from('\u0001a\u0000\u0000\u000c\u0000\u0001', 'latin1')]);
  assert.equal(decodePacket(question)?.questions.length, 1);
  for (let length = 0; length < question.length; length++)
    assert.equal(decodePacket(question.subarray(0, length)), null, `${length} bytes`);
  const names: Record<string, readonly number[]> = {
    'a pointer to itself': [0xc0, 12],
    'a forward pointer': [0xc0, 14, 0, 0],
    'a reserved label type': [0x80, 0],
    'a truncated label': [63, 65],
    'a truncated pointer': [0xc0],
  };
  for (const [what, name] of Object.entries(names))
    assert.equal(decodePacket(Buffer.concat([header(1), Buffer.from(name), Buffer.alloc(4)])), null, what);
  const endless = Buffer.concat([header(1), Buffer.alloc(1300, '\u0001a'), Buffer.alloc(5)]);
  assert.equal(decodePacket(endless), null, 'a name of more than 255 bytes');
  assert.equal(decodePacket(Buffer.concat([header(33), Buffer.alloc(33 * 5)])), null, '33 questions');
  assert.equal(decodePacket(Buffer.concat([header(32), Buffer.alloc(32 * 5)]))?.questions.length, 32);
});

test('the decoder reads each byte of a packet at most a few times', () => {
  // Records that start with a pointer to one long name, which is a chain of pointers.
  const label = Buffer.from(`\u003f${'a'.repeat(63)}`, 'latin1');
  const chain = Buffer.concat([header(0, 32), Buffer.from([0, 12]), ...Array.from({ length: 3 }, () => label)]);
  const pointers = Array.from({ length: 600 }, (_, i) => Buffer.from([0xc0, 12 + 2 * Math.max(0, i - 1)]));
  const packets = [
    Buffer.concat([chain, ...pointers]).subarray(0, 1500),
    Buffer.concat([header(0, 65_535), Buffer.alloc(1488, 0xc0)]),
    Buffer.concat([header(32), ...Array.from({ length: 7 }, () => label), Buffer.alloc(1000, 0xc0)]).subarray(0, 1500),
    Buffer.concat([
      header(32),
      Buffer.concat([label, label, label, Buffer.alloc(1)]),
      Buffer.from([0, 12, 0, 1]),
      ...Array.from({ length: 31 }, () => Buffer.from([0xc0, 12, 0, 12, 0, 1])),
    ]),
  ];
  for (const [i, packet] of packets.entries()) {
    const { reads } = readsOf(packet);
    assert.ok(reads <= 32 * 300, `packet ${i}: ${reads} reads`);
  }
  assert.equal(readsOf(packets[3] ?? Buffer.alloc(0)).decoded?.questions.length, 32);
  assert.equal(readsOf(Buffer.alloc(65_507, 0xc0)).reads, 0, 'a datagram of 64 KB is not decoded');
});
