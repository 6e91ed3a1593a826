/** The API token is sent only to its daemon, not to another program on the same port. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/foundation/clock.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { LocalDaemon } from '../../src/surfaces/client/node.ts';
import { unlimitedFetch } from '../../src/surfaces/client/unlimited-fetch.ts';
import { DaemonLink } from '../../src/surfaces/mcp/daemon-link.ts';
import { ProvenAgent, provenAgent } from '../../src/surfaces/proven-agent.ts';
import { runSvc } from '../support/cli-run.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startWorld } from './rest/support.ts';

const SHORT = 'short-one';
const LONG = 'mT9vQ2xW7rK4pL8sZ1bN6c';
const KEY = randomBytes(32);

/** A program on a port that a daemon has left. It stores every received byte. */
async function thief(t: TestContext, serve: (socket: Socket) => void) {
  const heard: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', (chunk: Buffer) => heard.push(chunk));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { address, heard: () => Buffer.concat(heard).toString('latin1') };
}

/** The data directory of a crashed daemon. */
function dataDirectory(t: TestContext, api_addr: string, proofKey: Uint8Array = KEY): string {
  const dataDir = temporaryDirectory(t);
  const proof_key = Buffer.from(proofKey).toString('base64url');
  const info = { pid: process.pid, api_addr, started_at: '2026-01-01T00:00:00.000Z', version: '0', proof_key };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
  return dataDir;
}

/** Forwards connections to a daemon on another port, as ssh and containers do. */
const forwards =
  ({ port, host }: { readonly port: number; readonly host: string }) =>
  (socket: Socket): void => {
    const there = dial(port, host).on('error', () => {});
    socket.pipe(there).pipe(socket);
  };

const answers = (head: string) => (socket: Socket) => void socket.on('data', () => socket.end(`${head}\r\n\r\n`));

test('no client sends the token to another program on the port of its daemon', async (t) => {
  for (const answer of [
    'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0',
    'HTTP/1.1 204 No Content',
    `HTTP/1.1 204 No Content\r\nSvc-Daemon-Proof: v1=${'0'.repeat(64)}`,
    `HTTP/1.1 204 No Content\r\nSvc-Daemon-Proof: 1.${'0'.repeat(64)}`,
    `HTTP/1.1 204 No Content\r\nSvc-Daemon-Proof: 2.${'0'.repeat(128)}`,
  ])
    for (const token of [SHORT, LONG]) {
      const { address, heard } = await thief(t, answers(answer));
      const dataDir = dataDirectory(t, address);
      const signal = AbortSignal.timeout(30_000);
      const reported = (error: unknown): boolean =>
        error instanceof SvcError && error.code === 'daemon_unreachable' && /did not prove/.test(error.message);
      for (const env of [
        { SVC_TOKEN: token, SVCD_DATA_DIR: dataDir },
        { SVC_TOKEN: token, SVC_API: `http://${address}` },
      ])
        for (const args of [['status'], ['events', '--follow'], ['doctor']]) {
          const { code, stderr, stdout } = await runSvc(args, { dataDir: temporaryDirectory(t), env });
          assert.notEqual(code, 0, args.join(' '));
          assert.match(stderr + stdout, /did not prove/);
        }
      const client = new LocalDaemon({ baseUrl: `http://${address}`, token });
      await assert.rejects(client.api.status(), reported);
      await assert.rejects(client.events({ signal }).next(), reported);
      const options = { dataDir, configFile: join(dataDir, 'config.toml'), token, profiles: undefined };
      const link = new DaemonLink(options, { clock: systemClock });
      await assert.rejects(link.callTool('svc_status', {}, signal), reported);
      link.close();
      assert.match(heard(), /OPTIONS \/health /);
      assert.ok(!heard().includes(token));
      assert.ok(!/authorization/i.test(heard()));
    }
});

test('a daemon proves the key of its data directory, or a token of any length', async (t) => {
  for (const token of [SHORT, LONG]) {
    const world = await startWorld(t, { token, requireLocalToken: true, proofKey: KEY });
    const ping = async (secrets: Parameters<typeof provenAgent>[1]): Promise<number> => {
      const agent = provenAgent(world.url, secrets);
      assert.ok(agent !== undefined);
      t.after(() => agent.destroy());
      const headers = { authorization: `Bearer ${secrets.token}` };
      return (await unlimitedFetch(`${world.url}/ping`, { headers }, agent)).status;
    };
    assert.equal(await ping({ token, dataDir: dataDirectory(t, world.url.slice(7)) }), 200);
    // Another daemon has another key.
    await assert.rejects(ping({ token, dataDir: dataDirectory(t, world.url.slice(7), randomBytes(32)) }));
    assert.equal(await ping({ token, dataDir: dataDirectory(t, '127.0.0.1:1') }), 200);
    await assert.rejects(ping({ token: `${token}x` }), ({ cause }: Error) => /did not prove/.test(String(cause)));
  }
});

test('a token of any length passes through a forwarder on another port', async (t) => {
  for (const token of [SHORT, LONG]) {
    const world = await startWorld(t, { token, requireLocalToken: true, proofKey: KEY });
    const { address } = await thief(t, forwards(world));
    for (const dataDir of [null, dataDirectory(t, '127.0.0.1:1')]) {
      const agent = provenAgent(`http://${address}`, { token, dataDir });
      assert.ok(agent !== undefined);
      const headers = { authorization: `Bearer ${token}` };
      assert.equal((await unlimitedFetch(`http://${address}/ping`, { headers }, agent)).status, 200);
      agent.destroy();
    }
    const { code, stderr } = await runSvc(['status'], {
      dataDir: temporaryDirectory(t),
      env: { SVC_TOKEN: token, SVC_API: address },
    });
    // The request was admitted. This server has no status.
    assert.deepEqual([code, /Not found/.test(stderr)], [5, true], stderr);
  }
});

test('no token is sent to a daemon that has none', async (t) => {
  const world = await startWorld(t, { proofKey: KEY });
  const { address, heard } = await thief(t, forwards(world));
  const env = { SVC_TOKEN: LONG, SVC_API: address };
  assert.equal((await runSvc(['status'], { dataDir: temporaryDirectory(t), env })).code, 5);
  const client = new LocalDaemon({ baseUrl: `http://${address}`, token: LONG });
  await assert.rejects(client.api.status(), { code: 'not_found' });
  assert.match(heard(), /GET \/status /);
  assert.ok(!heard().includes(LONG) && !/authorization/i.test(heard()));
});

test('a program that says that it needs no token does not get it', async (t) => {
  const { address, heard } = await thief(t, answers('HTTP/1.1 204 No Content\r\nSvc-Daemon-Proof: none'));
  const agent = provenAgent(`http://${address}`, { token: LONG });
  assert.ok(agent !== undefined);
  t.after(() => agent.destroy());
  assert.equal(await agent.needsToken(), false);
  await assert.rejects(unlimitedFetch(`http://${address}/ping`, { headers: { authorization: LONG } }, agent));
  assert.ok(!heard().includes(LONG));
});

test('--send-token sends the token without a proof', async (t) => {
  const { address, heard } = await thief(t, answers('HTTP/1.1 200 OK\r\nContent-Length: 0'));
  const env = { SVC_TOKEN: LONG, SVC_API: address };
  await runSvc(['--send-token', 'status'], { dataDir: temporaryDirectory(t), env });
  assert.ok(heard().includes(`Bearer ${LONG}`));
});

test('guesses in the exchange count as wrong tokens and delay only a short token', async (t) => {
  for (const token of [SHORT, LONG]) {
    const world = await startWorld(t, { token, requireLocalToken: true, proofKey: KEY });
    const knows = async (guess: string): Promise<boolean> => {
      const agent = new ProvenAgent(new URL(world.url), { token: guess });
      t.after(() => agent.destroy());
      return await agent.needsToken().catch(() => false);
    };
    assert.equal(await knows(token), true);
    for (let i = 0; i < 10; i++) assert.equal(await knows(`wrong-${i}`), false);
    assert.equal(await knows(token), token === LONG);
  }
});

test('without a token, and for other machines, no proof is needed', () => {
  assert.equal(provenAgent('http://127.0.0.1:2121', { token: '' }), undefined);
  assert.equal(provenAgent('https://127.0.0.1:2121', { token: LONG }), undefined);
  assert.equal(provenAgent('http://192.0.2.1:2121', { token: LONG }), undefined);
  for (const host of ['localhost', '[::1]', '127.9.9.9', '0.0.0.0'])
    assert.notEqual(provenAgent(`http://${host}:2121`, { token: LONG }), undefined, host);
});

test('one proof covers the requests of a connection', async (t) => {
  const world = await startWorld(t, { token: LONG, requireLocalToken: true, proofKey: KEY });
  const agent = provenAgent(world.url, { token: LONG });
  assert.ok(agent !== undefined);
  t.after(() => agent.destroy());
  const headers = { authorization: `Bearer ${LONG}` };
  for (let i = 0; i < 5; i++) {
    const answer = await unlimitedFetch(`${world.url}/ping`, { headers }, agent);
    await answer.text();
  }
  const page = await unlimitedFetch(`${world.url}/metrics`, { headers }, agent);
  assert.match(await page.text(), /^svcd_http_connections 1$/m);
});
