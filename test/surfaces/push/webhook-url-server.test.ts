import assert from 'node:assert/strict';
import { Server } from 'node:net';
import { test } from 'node:test';
import { silentLog } from '../../../src/foundation/log.ts';
import { webhookUrlServers } from '../../../src/surfaces/push/webhook-url-server.ts';

test('a connection that cannot be accepted for lack of file descriptors does not end the daemon', async (t) => {
  const listening = t.mock.method(Server.prototype, 'listen');
  const listener = await webhookUrlServers({ log: silentLog })(0, () => 'unknown');
  t.after(() => listener.close());
  const server = listening.mock.calls[0]?.this;
  assert.ok(server instanceof Server);
  server.emit('error', new Error('accept ENFILE'));
  const answer = await fetch(`http://127.0.0.1:${listener.port}/token/name`, { method: 'POST' });
  assert.equal(answer.status, 404);
});
