import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pushHandlers } from '../../../src/operations/handlers/push.ts';
import { pushOperations } from '../../../src/operations/push.ts';
import { testAid } from '../../support/agents.ts';
import { operationRunner } from '../../support/run-operation.ts';

test('secret parts of a webhook URL are not shown', async () => {
  const webhook = {
    ...{ name: '0011223344556677', originId: 'o', localAid: testAid(1), remoteAid: testAid(2) },
    ...{ registeredAt: 1, usedAt: 2, taken: 0, waiting: 0, lastError: null, lastTry: null },
  };
  const of = (url: string) => ({ ...webhook, url });
  const handlers = pushHandlers({
    webhooks: {
      list: () => [of('http://127.0.0.1:1/hook?token=s3cret'), of('http://127.0.0.1:1/hook#s3cret')],
      has: () => false,
      remove: () => {},
    },
    webhookUrls: { list: () => [], remove: () => {} },
  });
  const run = operationRunner(pushOperations, handlers);
  const shown = JSON.stringify(await run('pushList'));
  assert.ok(shown.includes('"http://127.0.0.1:1/hook"'));
  assert.ok(!shown.includes('s3cret'), shown);
});
