/** What callers learn of a node that is killed, and that it is found again when it is back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ApiAnswer, TestDaemon } from '../support/daemon.ts';
import { EchoService } from '../support/echo-service.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { dial, endOf } from '../support/tcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('calls and tunnels to a killed node fail clearly, and work again once it is back at its address', async (t) => {
  await using near = await TestDaemon.start();
  await using service = await EchoService.start();
  // It comes back at these ports: nobody else may have got them meanwhile.
  const options = {
    dataDir: temporaryDirectory(t),
    bootstrap: [near.dhtAddress],
    args: ['--listen', `127.0.0.1:${await quietPort()}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${await quietPort()}` },
  };
  const first = await TestDaemon.start(options);
  await Promise.all([ready(near), ready(first)]);
  const aid = await first.newAgent(service.address);
  await first.call('POST', `/agents/${aid}/publish`);
  const call = (method: string): Promise<ApiAnswer> => near.request(method, `/aid/${aid}/`);
  // A stream that has served a call stays open for the next one.
  assert.equal((await call('GET')).status, 200);
  const { listen } = await near.call<{ listen: string }>('POST', `/tunnel/${aid}`, { idle_timeout_sec: -1 });
  await first.kill();
  for (const method of ['POST', 'GET']) {
    const { status, body } = await call(method);
    assert.equal(status, 502);
    assert.equal((body as { error: string }).error, 'connect_failed');
  }
  assert.equal(await endOf(await dial(listen)), 'ECONNRESET');
  await using second = await TestDaemon.start(options);
  assert.equal(second.quicAddress, first.quicAddress);
  assert.equal((await call('POST')).status, 200);
  const client = await dial(listen);
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  assert.equal(await endOf(client), 'end');
});
