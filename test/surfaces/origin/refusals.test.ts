/** Responses that reject a request, in any chunks. All of them pass unchanged. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { onRefused } from '../../../src/surfaces/origin/webhooks.ts';

const ERROR = '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"é no such task"}}';
const RESULT = '{"jsonrpc":"2.0","id":1,"result":{"error":"none"}}';
const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream; charset=utf-8';

/** The verdict on a chunked response, and the bytes that passed. */
async function found(type: string, text: string, { status = 200, size = text.length } = {}) {
  const body = new IncomingMessage(new Socket());
  let refused = 0;
  onRefused({ status, statusText: '', headers: ['Content-Type', type], body, release: () => {} }, () => refused++);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) body.push(bytes.subarray(at, at + size));
  body.push(null);
  const passed: Buffer[] = [];
  for await (const chunk of body.resume()) passed.push(chunk);
  return { refused, isWhole: Buffer.concat(passed).toString() === text };
}

test('a JSON-RPC error is a refusal, alone or as the first event', async () => {
  const cases: [type: string, text: string, refused: number][] = [
    [JSON_TYPE, ERROR, 1],
    [JSON_TYPE, RESULT, 0],
    [JSON_TYPE, `[${ERROR}]`, 0],
    [JSON_TYPE, '{"error"', 0],
    [JSON_TYPE, ERROR.replace('no such task', 'x'.repeat(64 * 1024)), 0],
    ['text/plain', ERROR, 0],
    [STREAM_TYPE, `: hello\n\nid: 1\ndata: ${ERROR}\n\n`, 1],
    [STREAM_TYPE, `data: ${ERROR}\n\ndata: ${ERROR}\n\n`, 1],
    [STREAM_TYPE, `data: ${RESULT}\n\ndata: ${ERROR}\n\n`, 0],
    [STREAM_TYPE, `data: ${'x'.repeat(65 * 1024)}\n\ndata: ${ERROR}\n\n`, 0],
    [STREAM_TYPE, `data: ${ERROR}`, 0],
  ];
  for (const [type, text, refused] of cases)
    for (const size of [text.length, 100, 7])
      assert.deepEqual(await found(type, text, { size }), { refused, isWhole: true }, `${type} ${text.slice(0, 80)}`);
});

test('an error status is a refusal for any body', async () => {
  assert.equal((await found('text/plain', 'no', { status: 404 })).refused, 1);
  assert.equal((await found(JSON_TYPE, RESULT, { status: 500 })).refused, 1);
});
