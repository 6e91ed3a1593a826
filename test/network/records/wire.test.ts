/** What is let in to the engine of the DHT, and as what. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type DHT from 'dht-rpc';
import { nodeId } from '../../../src/network/records/routing-id.ts';
import { networkTag, tagSockets } from '../../../src/network/records/wire.ts';

const FROM = { host: '198.51.100.7', port: 4121 };
const TAG = networkTag('test');

const NEAR = '127.0.0.9';

class FakeSocket extends EventEmitter implements DHT.Socket {
  readonly bound = true;
  bind(): void {}
  address(): DHT.Address | null {
    return FROM;
  }
  async close(): Promise<void> {}
  readonly sent: Uint8Array[] = [];
  trySend(datagram: Uint8Array): void {
    this.sent.push(datagram);
  }
  async send(datagram: Uint8Array): Promise<boolean> {
    this.sent.push(datagram);
    return true;
  }
}

function wire() {
  const inner = new FakeSocket();
  const udx: Pick<DHT.Udx, 'createSocket'> = { createSocket: () => inner };
  const strangers: DHT.Address[] = [];
  tagSockets(udx, TAG, {
    admits: () => true,
    queue: (_from, answer) => answer(),
    onDatagram: () => {},
    knows: () => false,
    onStranger: (from) => strangers.push(from),
    mayBeOneMachine: (asked, from) => asked.host === '10.0.0.1' && from.host === FROM.host,
    idSeenBy: (host) => (host === NEAR ? nodeId({ host: '127.0.0.1', port: 1 }) : null),
  });
  const entered: Uint8Array[] = [];
  const socket = udx.createSocket();
  socket.on('message', (datagram: Uint8Array) => entered.push(datagram));
  return {
    strangers,
    entered,
    sent: inner.sent,
    leave: (to: string, ...body: number[]) => socket.trySend(Uint8Array.from(body), 4121, to),
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

test('an answer is let in from who was asked, and from another address of the same machine', () => {
  for (const [asked, isLetIn] of [
    [FROM.host, true],
    ['10.0.0.1', true],
    ['10.0.0.2', false],
  ] as const) {
    const { entered, send, leave } = wire();
    leave(asked, 0x03, 0, ...REST);
    send(0x13, 1, ...REST);
    assert.equal(entered.length, isLetIn ? 1 : 0, asked);
  }
});

test('who sees us under another address is told the routing id of that one, in requests and in answers', () => {
  const { sent, leave } = wire();
  const [ours, seen] = [nodeId(FROM), nodeId({ host: '127.0.0.1', port: 1 })];
  for (const kind of [0x03, 0x13]) {
    for (const [host, id] of [
      [NEAR, seen],
      ['198.51.100.9', ours],
    ] as const) {
      leave(host, kind, 1, ...REST);
      const expected = Buffer.from([...TAG, kind, 1, ...REST.slice(0, 8), ...id, 0]);
      assert.deepEqual(Buffer.from(sent.at(-1) ?? []), expected);
    }
    leave(NEAR, kind, 0, ...REST);
    assert.deepEqual(Buffer.from(sent.at(-1) ?? []), Buffer.from([...TAG, kind, 0, ...REST]), 'there is no id in it');
  }
});

test('flags in a longer form, in which the engine would find others than are looked at here, are no datagram', () => {
  for (const flags of [[0xfd, 1, 0], [0xfe, 1, 0, 0, 0], [0xff, 1, 0, 0, 0, 0, 0, 0, 0], [32], [0x80]]) {
    const { strangers, entered, send } = wire();
    send(0x03, ...flags, ...REST);
    assert.deepEqual([strangers, entered], [[], []], String(flags));
  }
});
