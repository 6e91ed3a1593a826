import assert from 'node:assert/strict';
import { test } from 'node:test';
import { filterOf, MAX_REFUSED_SOURCES } from '../../../../src/network/transport/quic/initial-guard.ts';

const PASSED = 0xffffffff;

/** A datagram as a socket filter sees it: the IP headers, and the data from the UDP header on. */
interface Packet {
  readonly ip: Uint8Array;
  readonly udp: Uint8Array;
}

function packet(source: readonly number[], first: number): Packet {
  const isIpv4 = source.length === 4;
  const ip = new Uint8Array(isIpv4 ? 20 : 40);
  ip[0] = isIpv4 ? 0x45 : 0x60;
  ip.set(source, isIpv4 ? 12 : 8);
  const udp = new Uint8Array(28);
  udp[8] = first;
  return { ip, udp };
}

/** The verdict of the kernel: 0 drops. */
function run(filter: Uint8Array, { ip, udp }: Packet, random = 0): number {
  const program = Buffer.from(filter);
  const load = (at: number, bytes: number): number => {
    if (at === 0xfffff000 + 56) return random;
    const [from, offset] = at >= 0xfff00000 ? [ip, at - 0xfff00000] : [udp, at];
    return Buffer.from(from).readUIntBE(offset, bytes);
  };
  let accumulator = 0;
  for (let at = 0; at < program.length; at += 8) {
    const operand = program.readUInt32LE(at + 4);
    const jump = (holds: boolean): void => {
      at += 8 * program.readUInt8(at + (holds ? 2 : 3));
    };
    switch (program.readUInt16LE(at)) {
      case 0x30:
        accumulator = load(operand, 1);
        break;
      case 0x20:
        accumulator = load(operand, 4);
        break;
      case 0x54:
        accumulator &= operand;
        break;
      case 0x15:
        jump(accumulator === operand);
        break;
      case 0x25:
        jump(accumulator > operand);
        break;
      case 0x06:
        return operand;
      default:
        assert.fail('unknown instruction');
    }
  }
  return assert.fail('the program does not end');
}

const INITIAL = 0xc3;
const V4 = [198, 51, 100, 7];
const V6 = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9];
const NETWORK = Uint8Array.from(V6.slice(0, 8));

test('only first packets of the listed sources are dropped', () => {
  const filter = filterOf({ sources: [Uint8Array.of(192, 0, 2, 1), Uint8Array.from(V4), NETWORK], thinned: false });
  assert.equal(run(filter, packet(V4, INITIAL)), 0);
  assert.equal(run(filter, packet(V6, INITIAL)), 0);
  assert.equal(run(filter, packet([198, 51, 100, 8], INITIAL)), PASSED);
  assert.equal(run(filter, packet([...V6.slice(0, 7), 2, ...V6.slice(8)], INITIAL)), PASSED);
  assert.equal(run(filter, packet([...V6.slice(0, 3), 0xb9, ...V6.slice(4)], INITIAL)), PASSED);
  // Handshake, 0-RTT and Retry packets have long headers too; 1-RTT packets have short ones.
  for (const first of [0xd3, 0xe3, 0xf3, 0x43]) {
    assert.equal(run(filter, packet(V4, first)), PASSED);
    assert.equal(run(filter, packet(V6, first)), PASSED);
  }
});

test('without a dominant source, one first packet of 64 passes', () => {
  const filter = filterOf({ sources: [Uint8Array.from(V4)], thinned: true });
  assert.equal(run(filter, packet([192, 0, 2, 1], INITIAL), 2 ** 32 / 64 - 2), PASSED);
  assert.equal(run(filter, packet([192, 0, 2, 1], INITIAL), 2 ** 32 / 64 + 1), 0);
  assert.equal(run(filter, packet(V4, INITIAL), 0), 0);
  assert.equal(run(filter, packet([192, 0, 2, 1], 0x43), 2 ** 31), PASSED);
});

test('a filter has a maximum number of sources, and all its jumps reach their target', () => {
  const sources = Array.from({ length: MAX_REFUSED_SOURCES + 1 }, (_, i) => Uint8Array.of(0x20, 1, 0, 0, 0, 0, 0, i));
  const filter = filterOf({ sources, thinned: false });
  const from = (i: number): Packet => packet([0x20, 1, 0, 0, 0, 0, 0, i, 0, 0, 0, 0, 0, 0, 0, 1], INITIAL);
  assert.equal(run(filter, from(0)), 0);
  assert.equal(run(filter, from(MAX_REFUSED_SOURCES - 1)), 0);
  assert.equal(run(filter, from(MAX_REFUSED_SOURCES)), PASSED);
});
