import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Assistant, fromBase64, type Values } from '../support/assistant.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Arguments of a node on loopback, on ports of its own. */
const LOCAL = ['--listen', '127.0.0.1:0', '--api-addr', '127.0.0.1:0', '--no-open-browser'];

test('an assistant does the main job as a node of its own, another through a daemon that restarts', async (t) => {
  await using service = await EchoService.start();
  const dataDir = temporaryDirectory(t);
  let daemon = await TestDaemon.start({ dataDir });
  t.after(() => daemon.stop());
  await using seeker = await Assistant.overStdio(temporaryDirectory(t), 'modern', [
    ...LOCAL,
    '--bootstrap',
    daemon.dhtAddress,
  ]);
  await eventually(
    'the node is on the network',
    async () => (await seeker.call('svc_status'))['network_ready'] === true,
  );
  const asking = await seeker.newAgent();

  await using provider = await Assistant.overStdio(dataDir, 'modern', ['--mcp-profile', 'core']);
  assert.ok(provider.tools.includes('svc_fetch') && !provider.tools.includes('svc_tunnel_open'));
  const offered = await provider.newAgent({ service_tcp: service.address });
  assert.equal((await daemon.request('GET', `/agents/${offered}`)).status, 200);
  await provider.call('svc_service_register', { aid: offered, services: ['lang.translate'], brief: 'Translates' });
  const { entries } = await seeker.call<{ entries: Values[] }>('svc_discover', { services: ['lang.translate'] });
  assert.equal(entries[0]?.['aid'], offered);
  const answer = await seeker.call('svc_fetch', { remote_aid: offered, path: '/hello' });
  const echo: Echo = JSON.parse(fromBase64(answer['body']));
  assert.equal(echo.headers['svc-caller-aid'], asking);

  // The daemon comes back on other ports: the assistant goes on as if nothing had been.
  await daemon.kill('SIGTERM');
  const waiting = provider.attempt('svc_agents_list');
  daemon = await TestDaemon.start({ dataDir });
  // Where the start took longer than a call waits, the first one says so, and the next succeeds.
  assert.match(JSON.stringify(await waiting), new RegExp(`${offered}|daemon_unreachable`));
  const { agents } = await provider.persist<{ agents: Values[] }>('svc_agents_list');
  assert.equal(agents[0]?.['aid'], offered);
});
