import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExactLines } from '../../../src/surfaces/mcp-share/exact-json.ts';

const MESSAGE = { jsonrpc: '2.0', method: 'notifications/x' };

test('lines that cannot be messages are skipped without being parsed', (t) => {
  const lines = new ExactLines();
  const parse = t.mock.method(JSON, 'parse');
  for (const noise of ['\n', 'text\n', '\u001b[31mred\n', '\u0000\u00ff\n'])
    lines.append(Buffer.from(noise.repeat(10_000)));
  for (const part of ['te', 'xt', '\n', ' ', JSON.stringify(MESSAGE), '\n']) lines.append(Buffer.from(part));
  assert.deepEqual(lines.readMessage(), MESSAGE);
  assert.equal(lines.readMessage(), null);
  assert.equal(parse.mock.callCount(), 1);
});
