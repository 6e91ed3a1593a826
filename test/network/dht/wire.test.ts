/** What is let in to the engine of the DHT, and as what. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type DHT from 'dht-rpc';
import { nodeId } from '../../../src/network/dht/node-address.ts';
import { networkTag, tagSockets } from '../../../src/network/dht/wire.ts';

const FROM = { host: '198.51.100.7', port: 4121 };
const TAG = networkTag('test');

class FakeSocket extends EventEmitter implements DHT.Socket {
  readonly bound = true;
  bind(): void {}
  address(): DHT.Address | null {
    return FROM;
  }
  async close(): Promise<void> {}
  trySend(): void {}
}

function wire() {
  const inner = new FakeSocket();
  const udx: DHT.Udx = { createSocket: () => inner };
  const strangers: DHT.Address[] = [];
  tagSockets(udx, TAG, {
    admits: () => true,
    onDatagram: () => {},
    knows: () => false,
    onStranger: (from) => strangers.push(from),
  });
  const entered: Uint8Array[] = [];
  udx.createSocket().on('message', (datagram: Uint8Array) => entered.push(datagram));
  return {
    strangers,
    entered,
    send: (...body: number[]) => inner.emit('message', Buffer.from([...TAG, ...body]), FROM),
  };
}

/** Number of the request, our address, the command, and the routing id of the sender. */
const REST = [7, 7, 127, 0, 0, 1, 0x19, 0x10, ...nodeId(FROM), 0];

test('a stranger that says that it is a node is asked for an answer, and the engine does not hear that it said so', () => {
  const { strangers, entered, send } = wire();
  send(0x03, 1, ...REST);
  assert.deepEqual(strangers, [FROM]);
  assert.equal(entered[0]?.[1], 0);
  assert.equal(entered[0]?.length, 2 + REST.length - 32);
});

test('flags in a longer form, in which the engine would find others than are looked at here, are no datagram', () => {
  for (const flags of [[0xfd, 1, 0], [0xfe, 1, 0, 0, 0], [0xff, 1, 0, 0, 0, 0, 0, 0, 0], [32], [0x80]]) {
    const { strangers, entered, send } = wire();
    send(0x03, ...flags, ...REST);
    assert.deepEqual([strangers, entered], [[], []], String(flags));
  }
});
