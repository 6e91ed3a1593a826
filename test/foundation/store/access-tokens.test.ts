import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { TunnelStore } from '../../../src/foundation/store/tunnels.ts';
import { WebhookStore } from '../../../src/foundation/store/webhooks.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [LOCAL, REMOTE] = [testAid(1), testAid(2)];
const TOKEN = 'open-sesame-of-a-tunnel';
const OTHER = 'open-sesame-of-an-address';
const IN_URL = 'secret-part-of-a-webhook-url';

function openAt(t: TestContext, folder: string): Store {
  const store = Store.open(join(folder, 'test.db'), MIGRATIONS);
  t.after(() => {
    try {
      store.close();
    } catch {
      // The test closed it.
    }
  });
  return store;
}

/** True if a file of the database contains a text. */
function isOnDisk(folder: string, text: string): boolean {
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
}

test('access tokens are not on disk as plain text, and only the same node reads them', (t) => {
  const folder = temporaryDirectory(t);
  const store = openAt(t, folder);
  const tunnel = { id: 't', localAid: LOCAL, remoteAid: REMOTE, localPort: 1, idleTimeoutSec: -1, disableRelay: false };
  new TunnelStore(store, testSecrets()).save({ ...tunnel, accessToken: TOKEN });
  const origin = { id: 'o', localAid: LOCAL, remoteAid: REMOTE, port: 2, openedAt: 0 };
  new OriginStore(store, testSecrets()).save({ ...origin, accessToken: OTHER });
  assert.deepEqual(
    [new TunnelStore(store, testSecrets()).list()[0], new OriginStore(store, testSecrets()).list()[0]],
    [
      { ...tunnel, accessToken: TOKEN },
      { ...origin, accessToken: OTHER },
    ],
  );
  assert.equal(new TunnelStore(store, testSecrets(2)).list()[0]?.accessToken, undefined);
  store.run`UPDATE tunnels SET id = 'x'`;
  assert.equal(new TunnelStore(store, testSecrets()).list()[0]?.accessToken, undefined);
  assert.ok(!isOnDisk(folder, TOKEN) && !isOnDisk(folder, OTHER));
});

test('URLs of webhooks and headers of notifications are not on disk as plain text', (t) => {
  const folder = temporaryDirectory(t);
  const store = openAt(t, folder);
  new OriginStore(store, testSecrets()).save({
    ...{ id: 'o', localAid: LOCAL, remoteAid: REMOTE, port: 2, openedAt: 0 },
    accessToken: undefined,
  });
  const webhooks = new WebhookStore(store, testSecrets());
  const url = `http://127.0.0.1:1/hook?key=${IN_URL}`;
  const headers = ['Authorization', `Bearer ${TOKEN}`];
  assert.equal(webhooks.register({ name: 'w', originId: 'o', url, purpose: 'task' }, 1), 'w');
  assert.equal(webhooks.register({ name: 'v', originId: 'o', url, purpose: 'task' }, 2), 'w');
  webhooks.addNotification({ webhook: 'w', id: 'n', headers, body: new Uint8Array(1) }, 3);
  assert.deepEqual(
    [webhooks.get('w')?.url, webhooks.withPending(), webhooks.list(9)[0]?.webhook.url, webhooks.next('w')?.headers],
    [url, [{ name: 'w', url }], url, headers],
  );
  assert.deepEqual(
    [IN_URL, TOKEN].filter((text) => isOnDisk(folder, text)),
    [],
  );
  const ofOther = new WebhookStore(store, testSecrets(2));
  assert.deepEqual([ofOther.get('w'), ofOther.list(9), ofOther.withPending()], [null, [], []]);
});
