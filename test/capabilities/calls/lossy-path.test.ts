import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { HttpCaller } from '../../../src/capabilities/calls/http-caller.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { lossyNodes } from '../../support/lossy-nodes.ts';
import { sha256, someBytes } from '../../support/object-world.ts';

const MIB = 1024 * 1024;
/** What may be transferred before there is a lane. */
const BEFORE_LANE_BYTES = 2 * MIB;

test('the large body of a call, and its large response, use a lane', async (t) => {
  const { near, far, lanes } = await lossyNodes(t, { loss: 0.01 });
  const echo = createServer((request, response) => void request.pipe(response));
  far.links.accept('http', (link) => void echo.emit('connection', link));
  const caller = new HttpCaller(near.links, systemClock);
  t.after(() => caller.stop());
  const bytes = someBytes(12 * MIB);
  const chunks = Array.from({ length: 12 }, (_, i) => bytes.subarray(i * MIB, (i + 1) * MIB));
  const body = Readable.from(chunks, { objectMode: false });
  const call = { method: 'POST', path: '/', headers: [], body, bodyLength: bytes.length };
  const response = await caller.request(near.aid, far.aid, call);
  assert.equal(sha256(await buffer(response.body)), sha256(bytes));
  for (const { received } of [lanes.near.lanes.stats(), lanes.far.lanes.stats()])
    assert(received > bytes.length - BEFORE_LANE_BYTES, `only ${received} bytes used a lane`);
});
