/** A task of an A2A agent at a local address: both daemons are killed between its request and its result. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SendMessageRequest } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { JudgedServer } from '../support/judges.ts';
import { ready } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const TOY_AGENT = fileURLToPath(new URL('../support/a2a/toy-agent.ts', import.meta.url));

test('a client of the official SDK gets the result of a task after both daemons were killed', async (t) => {
  const agent = await JudgedServer.start([process.execPath, TOY_AGENT]);
  t.after(() => agent.stop());
  const hub = await TestDaemon.start();
  t.after(() => hub.stop());
  const bootstrap = [hub.dhtAddress];
  const [nearDir, farDir] = [temporaryDirectory(t), temporaryDirectory(t)];
  let far = await TestDaemon.start({ dataDir: farDir, bootstrap });
  let near = await TestDaemon.start({ dataDir: nearDir, bootstrap });
  t.after(() => Promise.all([near.stop(), far.stop()]));
  await Promise.all([ready(near), ready(far)]);
  await near.newAgent();
  const aid = await far.newAgent(`http://127.0.0.1:${agent.http}`);
  await far.call('POST', `/agents/${aid}/publish`);
  const url = await svcOk(near, '--quiet', 'origin', 'open', aid);

  const client = await new ClientFactory().createFromUrl(url);
  const message = { messageId: randomUUID(), contextId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hold on' }] };
  const begun = Promise.withResolvers<string>();
  const follow = async (): Promise<void> => {
    for await (const { payload } of client.sendMessageStream(SendMessageRequest.fromJSON({ message })))
      if (payload?.$case === 'statusUpdate') begun.resolve(payload.value.taskId);
  };
  // The stream breaks with the daemons.
  follow().catch(begun.reject);
  const task = { tenant: '', id: await begun.promise };

  await Promise.all([near.kill(), far.kill()]);
  far = await TestDaemon.start({ dataDir: farDir, bootstrap });
  near = await TestDaemon.start({ dataDir: nearDir, bootstrap });
  await Promise.all([ready(near), ready(far)]);
  const held = await eventually('the agent answers again', () =>
    client.getTask({ ...task, historyLength: undefined }).catch(() => undefined),
  );
  assert.equal(held.id, task.id);
  const ended = await client.cancelTask({ ...task, metadata: undefined });
  assert.notDeepEqual(ended.status?.state, held.status?.state);
  const result = await client.getTask({ ...task, historyLength: undefined });
  assert.deepEqual(result.status?.state, ended.status?.state);
});
