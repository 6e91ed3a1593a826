import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { ready } from '../support/network.ts';
import { sha256, someBytes } from '../support/object-world.ts';
import { SseClient } from '../support/sse.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('an object moves from one daemon to another, its access list applies, and event streams open', async (t) => {
  const [theirs, ours] = [temporaryDirectory(t), temporaryDirectory(t)];
  await using far = await TestDaemon.start({ env: { SVCD_FILES_ROOT: theirs } });
  await using near = await TestDaemon.start({ bootstrap: [far.dhtAddress], env: { SVCD_FILES_ROOT: ours } });
  await ready(near);
  const holder = await far.newAgent();
  const reader = await near.newAgent();
  await far.call('POST', `/agents/${holder}/publish`);

  const bytes = someBytes(2_000_000);
  const object_id = sha256(bytes);
  const upload = await fetch(`${far.api}/agents/${holder}/cas?name=big.bin`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: bytes,
  });
  assert.equal(upload.status, 200);
  const read = await fetch(`${near.api}/aid/${holder}/cas/${object_id}`);
  assert.ok(Buffer.from(await read.arrayBuffer()).equals(bytes));
  const args = { aid: reader, object_id, hint_aid: holder, dest: 'in/big.bin' };
  await near.call('POST', '/mcp/call', { tool: 'group_object_get', args });
  assert.ok(readFileSync(join(ours, 'in', 'big.bin')).equals(bytes));

  await far.call('PATCH', `/agents/${holder}/acl`, { default: 'deny' });
  assert.equal((await near.request('GET', `/aid/${holder}/cas/${object_id}`)).status, 403);
  assert.equal((await far.request('GET', `/aid/${holder}/cas/${object_id}`)).status, 403);

  const events = await SseClient.open(`${near.api}/agents/${reader}/events`);
  assert.equal(events.status, 200);
  await events.until(({ frames }) => frames.length > 0);
  events.close();
  await far.call('DELETE', `/agents/${holder}`, {});
  assert.equal((await near.request('GET', `/aid/${holder}/cas/${object_id}`)).status === 200, false);
});
