import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { fuzzApi } from '../support/fuzz-api.ts';

const SEED = 41_212;
const RUNS = 1500;
/**
 * JSON-RPC returns its own errors; the MCP tests send it invalid requests. The node operations would stop the daemon.
 */
const SKIP = ['mcp_post', 'mcpBare_post', 'mcpHub_post', 'nodeStop', 'nodeRestart'];

test('a daemon answers every fuzzed request as its OpenAPI document says, and keeps running', async () => {
  await using first = await TestDaemon.start();
  await using daemon = await TestDaemon.start({ bootstrap: [first.dhtAddress] });
  const aids = [await first.newAgent(), await daemon.newAgent(), await daemon.newAgent('127.0.0.1:9')];
  const document = (await daemon.request('GET', '/openapi.json')).body;
  const { requests, statuses } = await fuzzApi(daemon.api, document, { runs: RUNS, seed: SEED, aids, skip: SKIP });
  assert.equal(requests, RUNS);
  assert.ok([...statuses.keys()].filter((key) => / 20\d$/.test(key)).length > 20, [...statuses.keys()].join('\n'));
  assert.equal((await daemon.request('GET', '/health')).status, 200);
  assert.ok(!daemon.output.includes('failed unexpectedly'), daemon.output);
});
