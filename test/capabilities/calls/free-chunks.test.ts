import assert from 'node:assert/strict';
import { request } from 'node:http';
import { Duplex } from 'node:stream';
import { test } from 'node:test';

test("Node's HTTP parser copies bodies, so a chunk may be freed after parsing", async () => {
  const link = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const manners = { ref() {}, unref() {}, setKeepAlive() {}, setNoDelay() {}, setTimeout() {} };
  const call = request({ createConnection: () => Object.assign(link, manners) });
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    call.on('error', reject);
    call.on('response', (answer) => {
      answer.on('data', (chunk: Buffer) => received.push(chunk));
      answer.on('end', resolve);
    });
  });
  call.end();
  await new Promise((resolve) => call.once('socket', resolve));
  link.push(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n'));
  const body = Buffer.allocUnsafeSlow(100_000).fill(7);
  link.push(body);
  await ended;
  assert.ok(received.every((chunk) => chunk.buffer !== body.buffer));
  assert.ok(Buffer.concat(received).equals(body));
});
