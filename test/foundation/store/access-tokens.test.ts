import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { sealEarlierTokens } from '../../../src/foundation/store/access-tokens.ts';
import { OriginStore } from '../../../src/foundation/store/origins.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { TunnelStore } from '../../../src/foundation/store/tunnels.ts';
import { WebhookUrlStore } from '../../../src/foundation/store/webhook-urls.ts';
import { sealEarlierUrls, WebhookStore } from '../../../src/foundation/store/webhooks.ts';
import { testAid } from '../../support/agents.ts';
import { testSecrets } from '../../support/stored-secrets.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [LOCAL, REMOTE] = [testAid(1), testAid(2)];
const TOKEN = 'open-sesame-of-a-tunnel';
const OTHER = 'open-sesame-of-an-address';
const IN_URL = 'secret-part-of-a-webhook-url';
const IN_WEBHOOK = 'secret-part-of-a-webhook';
/** The version before tokens were sealed. */
const BEFORE = MIGRATIONS.findIndex((sql) => sql.includes('sealed_token'));

function openAt(t: TestContext, folder: string, migrations = MIGRATIONS): Store {
  const store = Store.open(join(folder, 'test.db'), migrations);
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

test('secrets of an earlier version are sealed or hashed, keep working, and are overwritten on disk', (t) => {
  const folder = temporaryDirectory(t);
  const before = openAt(t, folder, MIGRATIONS.slice(0, BEFORE));
  const none = new Uint8Array();
  before.run`
    INSERT INTO agents (aid, key_name, operational_key, delegation, issued_at, expires_at, registered_at, heartbeat_at)
    VALUES (${LOCAL}, 'k', ${none}, ${none}, 0, 0, 0, 0)`;
  before.run`
    INSERT INTO tunnels (id, local_aid, remote_aid, access_token, local_port, idle_timeout_s, disable_relay)
    VALUES ('t', ${LOCAL}, ${REMOTE}, ${TOKEN}, 1, -1, 0)`;
  before.run`
    INSERT INTO origins (id, local_aid, remote_aid, access_token, port, opened_at)
    VALUES ('o', ${LOCAL}, ${REMOTE}, ${OTHER}, 2, 0)`;
  before.run`
    INSERT INTO push_boxes (id, called, caller, token, opened_at, renewed_at, node)
    VALUES ('b', ${LOCAL}, ${REMOTE}, ${IN_URL}, 0, 0, 'n')`;
  before.run`
    INSERT INTO webhooks (name, origin_id, url, purpose, registered_at, used_at)
    VALUES ('w', 'o', ${`http://127.0.0.1/${IN_WEBHOOK}`}, 'task', 0, 0)`;
  assert.ok([TOKEN, OTHER, IN_URL, IN_WEBHOOK].every((text) => isOnDisk(folder, text)));
  before.close();
  const store = openAt(t, folder);
  sealEarlierTokens(store, testSecrets());
  sealEarlierUrls(store, testSecrets());
  const webhooks = new WebhookStore(store, testSecrets());
  const url = `http://127.0.0.1/${IN_WEBHOOK}`;
  assert.equal(webhooks.get('w')?.url, url);
  assert.equal(webhooks.register({ name: 'v', originId: 'o', url, purpose: 'task' }, 1), 'w');
  assert.equal(new TunnelStore(store, testSecrets()).list()[0]?.accessToken, TOKEN);
  assert.equal(new OriginStore(store, testSecrets()).list()[0]?.accessToken, OTHER);
  const urls = new WebhookUrlStore(store, testSecrets());
  assert.equal(urls.byToken(IN_URL)?.id, 'b');
  // Servers that know the earlier URL still reach it after its caller got a new one.
  urls.renew('b', 'a hash', 1);
  urls.renew('b', 'a hash', 2);
  assert.equal(urls.byToken(IN_URL)?.id, 'b');
  assert.equal(urls.byToken(urls.byToken(IN_URL)?.tokenHash ?? ''), null);
  store.close();
  assert.deepEqual(
    [TOKEN, OTHER, IN_URL, IN_WEBHOOK].filter((text) => isOnDisk(folder, text)),
    [],
  );
});
