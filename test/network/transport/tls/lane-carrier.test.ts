import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { WebSocket } from 'ws';
import { TlsLaneCarrier } from '../../../../src/network/transport/tls/lane-carrier.ts';

const KIB = 1024;

/** A WebSocket whose messages leave when the test lets them. */
class SlowSocket extends EventEmitter {
  readonly OPEN = 1;
  readonly readyState = 1;
  bufferedAmount = 0;
  readonly #waiting: { readonly bytes: number; readonly done: () => void }[] = [];

  send({ length: bytes }: Uint8Array, done: () => void): void {
    this.bufferedAmount += bytes;
    this.#waiting.push({ bytes, done });
  }

  leave(messages: number): void {
    for (const { bytes, done } of this.#waiting.splice(0, messages)) {
      this.bufferedAmount -= bytes;
      done();
    }
  }
}

test('a small record, such as a pulse, does not cancel the drain event of an earlier one', () => {
  const socket = new SlowSocket();
  const carrier = new TlsLaneCarrier(socket as unknown as WebSocket);
  let drains = 0;
  carrier.on('drain', () => drains++);
  const records = Array.from({ length: 9 }, () => carrier.write(new Uint8Array(64 * KIB)));
  assert.deepEqual(records, [...Array.from({ length: 8 }, () => true), false]);
  socket.leave(3);
  assert.equal(carrier.write(new Uint8Array(20)), false, 'the earlier record still waits');
  assert.equal(drains, 0);
  socket.leave(7);
  assert.equal(drains, 1);
  assert.equal(carrier.write(new Uint8Array(20)), true);
});
