import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientHelloReader, MAX_CLIENT_HELLO_BYTES } from '../../../src/capabilities/entry/client-hello.ts';
import { clientHelloOf, helloWith, inRecords, serverNames } from '../../support/client-hello.ts';

const NAME = 'demo.vps.example.org';

function read(bytes: Uint8Array, size = bytes.length): { state: string; name: string | null; pushed: number } {
  const reader = new ClientHelloReader();
  let state = 'more';
  let at = 0;
  for (; at < bytes.length && state === 'more'; at += size) state = reader.push(bytes.subarray(at, at + size));
  assert.deepEqual(reader.head, Buffer.from(bytes.subarray(0, at)));
  return { state, name: reader.serverName, pushed: Math.min(at, bytes.length) };
}

test('reads the server name of a hello of Node, in chunks and records of any size', async () => {
  const hello = await clientHelloOf({ servername: NAME, ALPNProtocols: ['h2', 'http/1.1'] });
  for (const chunk of [1, 2, 7, 100, hello.length]) {
    for (const record of [1, 3, 4, 5, 64, 16_384]) {
      const bytes = inRecords(hello, record);
      assert.deepEqual(read(bytes, chunk), { state: 'done', name: NAME, pushed: bytes.length }, `${chunk} ${record}`);
    }
  }
});

test('a hello without a server name has none, and names are in lower case', async () => {
  assert.equal(read(await clientHelloOf({ servername: '' })).name, null);
  assert.deepEqual(read(helloWith([])), { state: 'done', name: null, pushed: helloWith([]).length });
  assert.equal(read(helloWith([serverNames('DEMO.VPS.Example.org')])).name, NAME);
  const withoutExtensions = Buffer.from(helloWith([]).subarray(0, -2));
  withoutExtensions.writeUInt16BE(withoutExtensions.length - 5, 3);
  withoutExtensions.writeUIntBE(withoutExtensions.length - 9, 6, 3);
  assert.equal(read(withoutExtensions).state, 'done');
});

test('only the outer name of ECH counts', () => {
  const inner: readonly [number, Uint8Array] = [0xfe0d, Buffer.from(`hidden ${NAME}`)];
  assert.equal(read(helloWith([inner, serverNames('outer.example.org')])).name, 'outer.example.org');
});

test('bytes after the hello are kept', () => {
  const hello = helloWith([serverNames(NAME)]);
  const reader = new ClientHelloReader();
  const more = Buffer.concat([hello, Buffer.from('early data')]);
  assert.equal(reader.push(more), 'done');
  assert.deepEqual([reader.serverName, reader.head], [NAME, more]);
});

test('several names, a second extension and names of other kinds are refused', () => {
  const many = Array.from({ length: 500 }, (_, i) => `n${i}.example.org`);
  const other: readonly [number, Uint8Array] = [0, Buffer.from([0, 4, 1, 0, 1, 97])];
  for (const extensions of [
    [serverNames(NAME, NAME)],
    [serverNames(...many)],
    [serverNames(NAME), serverNames(NAME)],
    [serverNames('')],
    [serverNames('a'.repeat(256))],
    [serverNames()],
    [other],
    [[0, Buffer.alloc(0)] as const],
  ])
    assert.equal(read(helloWith(extensions)).state, 'invalid');
  assert.equal(read(helloWith([serverNames('a'.repeat(255))])).state, 'done');
});

test('other protocols and other messages are refused by their first bytes', () => {
  const cases: readonly (readonly [Uint8Array, pushed: number])[] = [
    [Buffer.from('GET / HTTP/1.1\r\n\r\n'), 1],
    [Buffer.from('SSH-2.0-OpenSSH_10.0\r\n'), 1],
    [Buffer.from([0x80, 0x2e, 1, 3, 1]), 1],
    [Buffer.from([22, 2, 1, 0, 4]), 2],
    [Buffer.from([23, 3, 3, 0, 4]), 1],
    [Buffer.from([22, 3, 1, 0, 0, 22]), 5],
    [Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), 9],
  ];
  for (const [bytes, pushed] of cases) assert.deepEqual(read(bytes, 1), { state: 'invalid', name: null, pushed });
});

test('a hello has a limit, however it is sent', () => {
  const long = helloWith([[21, Buffer.alloc(MAX_CLIENT_HELLO_BYTES)]]);
  assert.equal(read(long).state, 'invalid');
  assert.ok(read(long, 1).pushed <= 5);
  const fragments = inRecords(helloWith([[21, Buffer.alloc(8000)]]), 1);
  const { state, pushed } = read(fragments, 1);
  assert.equal(state, 'invalid');
  assert.ok(pushed <= MAX_CLIENT_HELLO_BYTES);
  const announced = Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]);
  assert.deepEqual(read(announced, 1), { state: 'invalid', name: null, pushed: 9 });
  const near = helloWith([[21, Buffer.alloc(MAX_CLIENT_HELLO_BYTES - 200)], serverNames(NAME)]);
  assert.equal(read(near, 1000).name, NAME);
});

test('a hello that ends its fields early, or has more bytes, is refused', () => {
  const hello = helloWith([serverNames(NAME)]);
  for (let cut = 1; cut < hello.length - 9; cut++) {
    const shorter = Buffer.from(hello.subarray(0, hello.length - cut));
    shorter.writeUInt16BE(shorter.length - 5, 3);
    shorter.writeUIntBE(shorter.length - 9, 6, 3);
    const { state, name } = read(shorter);
    assert.equal(name, null);
    assert.ok(state === 'invalid' || (state === 'done' && shorter.length === 9 + 2 + 32 + 33 + 4 + 2), String(cut));
  }
  const longer = Buffer.concat([hello, Uint8Array.of(0)]);
  longer.writeUInt16BE(longer.length - 5, 3);
  assert.equal(read(longer).state, 'invalid');
});
