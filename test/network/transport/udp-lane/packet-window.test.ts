import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decodeUdxPacket,
  MAX_PACKETS_AHEAD,
  MAX_UNDELIVERED_BYTES,
  PacketWindow,
  UDX_TYPE,
} from '../../../../src/network/transport/udp-lane/lane-entrance.ts';

const data = (seq: number, payloadBytes = 1000) => ({ id: 1, type: UDX_TYPE.data, seq: seq >>> 0, payloadBytes });

test('packets in order use no budget. Packets out of order do until the gap is filled', () => {
  const window = new PacketWindow();
  for (let seq = 0; seq < 3; seq++) assert(window.admit(data(seq)));
  assert.equal(window.waitingBytes, 0);
  assert(window.admit(data(4)));
  assert(window.admit(data(5)));
  assert(window.admit(data(5)), 'a repetition');
  assert(window.waitingBytes > 2000 && window.waitingBytes < 2500);
  assert(window.admit(data(3)));
  assert.equal(window.waitingBytes, 0);
  assert(window.admit(data(0)), 'a retransmission that the stream may need');
});

test('a packet too far ahead for any valid sender is dropped', () => {
  const window = new PacketWindow();
  assert(window.admit(data(0)));
  assert(window.admit(data(MAX_PACKETS_AHEAD)));
  for (const seq of [MAX_PACKETS_AHEAD + 1, 2 ** 20, 2 ** 30, 2 ** 31]) assert(!window.admit(data(seq)), `${seq}`);
});

test('packets without payload are accepted', () => {
  const window = new PacketWindow();
  for (const type of [UDX_TYPE.sack, UDX_TYPE.destroy, UDX_TYPE.heartbeat, 0])
    assert(window.admit({ ...data(2 ** 30), type }));
});

test('accepted bytes that are never delivered break the lane', () => {
  const window = new PacketWindow();
  const packets = MAX_UNDELIVERED_BYTES / 1024;
  for (let seq = 0; seq < packets; seq++) window.admit(data(seq, 1024));
  assert(!window.isBroken);
  window.admit(data(packets, 1024));
  assert(window.isBroken);
  window.delivered(1024);
  assert(!window.isBroken);
});

test('packets that no lane sends are not decoded', () => {
  const packet = (type: number, bytes = 0, offset = 0): Buffer => {
    const one = Buffer.alloc(20 + bytes);
    one.set([255, 1, type, offset]);
    return one;
  };
  assert.deepEqual(decodeUdxPacket(packet(UDX_TYPE.data, 10, 4))?.payloadBytes, 6);
  for (const wrong of [
    packet(UDX_TYPE.data),
    packet(UDX_TYPE.data, 4, 4),
    packet(UDX_TYPE.data, 4, 5),
    packet(UDX_TYPE.end, 1),
    packet(UDX_TYPE.message, 1),
    packet(UDX_TYPE.heartbeat | UDX_TYPE.data, 1),
    packet(64),
    packet(UDX_TYPE.data, 10).subarray(0, 19),
    Buffer.from('a datagram of the record network'),
  ])
    assert.equal(decodeUdxPacket(wrong), null);
});
