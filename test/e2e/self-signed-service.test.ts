/** A bound service with an untrusted certificate. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { SELF_SIGNED } from '../support/self-signed.ts';

test('a self-signed service is refused unless its agent allows any certificate', async () => {
  await using daemon = await TestDaemon.start();
  const service = createServer(SELF_SIGNED, (_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const address = service.address();
  assert.ok(address !== null && typeof address === 'object');
  const bound = `127.0.0.1:${address.port}`;
  const aid = await daemon.newAgent(`https://${bound}`);
  const call = (): Promise<Response> => fetch(`${daemon.api}/aid/${aid}/`);
  assert.equal((await call()).status, 502);
  const lax = `https+insecure://${bound}`;
  const agent = await daemon.call<{ service_tcp: string }>('PATCH', `/agents/${aid}`, { service_tcp: lax });
  assert.equal(agent.service_tcp, lax);
  const answer = await call();
  assert.deepEqual([answer.status, await answer.text()], [200, 'hello']);
  await daemon.call('PATCH', `/agents/${aid}`, { service_tcp: `https://${bound}` });
  assert.equal((await call()).status, 502);
  service.closeAllConnections();
  service.close();
});
