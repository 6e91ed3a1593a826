import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { fuzzApi } from '../support/fuzz-api.ts';

const SEED = 41_212;
const RUNS = 1500;
/** Speaks JSON-RPC, errors included; the MCP tests send it what does not fit. And what ends the daemon, as asked. */
const SKIP = ['mcp_post', 'mcpBare_post', 'nodeStop', 'nodeRestart'];

test('whatever is sent to a real daemon, it answers as its OpenAPI document says, and lives on', async () => {
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
