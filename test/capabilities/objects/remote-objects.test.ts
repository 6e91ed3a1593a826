/** Responses of holders, which may send anything. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { objectResource, RemoteObjects, verifiedBytes } from '../../../src/capabilities/objects/remote-objects.ts';
import { testAid } from '../../support/agents.ts';

const ID = 'ab'.repeat(32);
const TAG = ['etag', `"${ID}"`];

/** Reads an object from a holder that responds with a status and headers. */
async function read(status: number, headers: readonly string[]) {
  const body = new PassThrough();
  const remote = new RemoteObjects({
    caller: { request: async () => ({ status, headers, body, release: () => {} }) },
  });
  const request = {
    local: testAid(1),
    holder: testAid(2),
    resource: objectResource(ID),
    method: 'GET' as const,
    headers: {},
  };
  try {
    const { size, start, length } = await remote.read({ ...request, signal: new AbortController().signal });
    return { size, start, length };
  } catch (error) {
    assert.equal(body.destroyed, true, 'a rejected response is not read');
    throw error;
  }
}

test('a whole object, a part, and the end of an object', async () => {
  assert.deepEqual(await read(200, [...TAG, 'content-length', '7']), { size: 7, start: 0, length: 7 });
  const part = await read(206, [...TAG, 'content-length', '3', 'content-range', 'bytes 4-6/7']);
  assert.deepEqual(part, { size: 7, start: 4, length: 3 });
  assert.deepEqual(await read(416, [...TAG, 'content-length', '0', 'content-range', 'bytes */7']), {
    size: 7,
    start: 0,
    length: 0,
  });
  assert.deepEqual(await read(304, TAG), { size: 0, start: 0, length: 0 });
});

test('a response for another object or with inconsistent numbers is rejected', async () => {
  const invalid: [number, readonly string[]][] = [
    [200, ['etag', `"${'cd'.repeat(32)}"`, 'content-length', '7']],
    [200, ['content-length', '7']],
    [200, TAG],
    [206, [...TAG, 'content-length', '3']],
    [206, [...TAG, 'content-length', '4', 'content-range', 'bytes 4-6/7']],
    [206, [...TAG, 'content-length', '2', 'content-range', 'bytes 4-6/7']],
    [206, [...TAG, 'content-length', '3', 'content-range', `bytes 4-6/${2 ** 60}`]],
    [416, [...TAG, 'content-length', '0', 'content-range', 'bytes 4-6/7']],
    [204, TAG],
    [500, TAG],
  ];
  for (const [status, headers] of invalid)
    await assert.rejects(read(status, headers), { code: 'protocol_error' }, `${status} ${headers.join(' ')}`);
});

test('a holder without the object, or with a changed file, is reported as such', async () => {
  await assert.rejects(read(404, []), { code: 'not_found' });
  await assert.rejects(read(410, []), { code: 'gone' });
});

test('the last bytes of an object are withheld until their hash is verified', async () => {
  const chunks = ['one', 'two', 'three'].map((text) => Buffer.from(text));
  const objectId = createHash('sha256').update(Buffer.concat(chunks)).digest('hex');
  const received: string[] = [];
  const collect = async (body: readonly Buffer[]) => {
    received.length = 0;
    async function* source() {
      yield* body;
    }
    for await (const chunk of verifiedBytes(source(), objectId)) received.push(Buffer.from(chunk).toString());
  };
  await collect(chunks);
  assert.deepEqual(received, ['one', 'two', 'three']);
  await assert.rejects(collect([...chunks.slice(0, 2), Buffer.from('thre3')]), { code: 'protocol_error' });
  assert.deepEqual(received, ['one', 'two']);
  await assert.rejects(collect(chunks.slice(0, 2)), { code: 'protocol_error' });
  assert.deepEqual(received, ['one']);
  await assert.rejects(collect([]), { code: 'protocol_error' });
});
