/** The default `ask`: callers that the access list does not know wait for a decision of the owner. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { ShareCommand } from '../support/share-command.ts';
import { connected, FIXTURE, LEGACY } from '../support/shared-mcp.ts';

interface Request {
  readonly id: string;
  readonly aid: string;
  readonly caller: string;
  readonly kind: string;
  readonly asked: string;
  readonly note: string;
  readonly known: boolean;
  readonly state: string;
  readonly count: number;
}

/** A service that counts everything that reaches it. */
class CountingService {
  readonly seen = { connections: 0, bytes: 0, requests: 0 };
  readonly #tcp: Server;
  readonly #http: HttpServer;

  private constructor() {
    this.#http = createHttpServer((request, response) => {
      this.seen.requests++;
      request.resume().once('end', () => response.end('served'));
    });
    this.#tcp = createServer((socket) => {
      this.seen.connections++;
      socket.on('error', () => {});
      socket.on('data', (chunk) => (this.seen.bytes += chunk.length));
      this.#http.emit('connection', socket);
    });
  }

  static async start(): Promise<CountingService> {
    const service = new CountingService();
    service.#tcp.listen(0, '127.0.0.1');
    await once(service.#tcp, 'listening');
    return service;
  }

  get address(): string {
    return `127.0.0.1:${(this.#tcp.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#http.closeAllConnections();
    this.#tcp.close();
  }
}

/** The response to a plain HTTP request over a tunnel; an empty text if the tunnel is reset. */
async function overTunnel(listen: string): Promise<string> {
  const [host, port] = listen.split(':');
  const socket = connect({ host: host ?? '', port: Number(port) });
  socket.on('error', () => {});
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('an agent whose owner is asked', () => {
  let home: TestDaemon;
  let far: TestDaemon;
  let service: CountingService;
  let aid: string;
  let guest: string;
  const dir = mkdtempSync(join(tmpdir(), 'svcd-ask-'));
  let args: string[];

  async function requests(): Promise<readonly Request[]> {
    return (await home.call<{ requests: Request[] }>('GET', '/access/requests')).requests;
  }

  async function only(): Promise<Request> {
    const [one, ...others] = await requests();
    assert.ok(one !== undefined && others.length === 0);
    return one;
  }

  before(async () => {
    args = ['--api-addr', `127.0.0.1:${await quietPort()}`];
    home = await TestDaemon.start({ dataDir: dir, args });
    far = await TestDaemon.start({ bootstrap: [home.dhtAddress] });
    await Promise.all([ready(home), ready(far)]);
    service = await CountingService.start();
    aid = await home.newAgent(service.address);
    guest = await far.newAgent();
    await svcOk(home, 'agents', 'acl', 'default', aid, 'ask');
    await svcOk(home, 'agents', 'publish', aid);
  });
  after(async () => {
    service.stop();
    await Promise.all([home.stop(), far.stop()]);
    rmSync(dir, { recursive: true, force: true });
  });

  test('a call waits, is allowed once, passes, and the next one asks again', async () => {
    const body = { method: 'POST', path: '/order?secret=1', body_base64: Buffer.from('cake').toString('base64') };
    // Its own daemon checked the service.
    const untouched = { ...service.seen };
    assert.equal(untouched.bytes, 0);
    await far.call('POST', `/agents/${guest}/profile`, { name: 'Ada' });
    await svcOk(far, 'trace', '--next', aid);
    const first = await far.request('POST', `/fetch/${aid}`, { ...body, note: 'It is me, Ada\u001b[31m' });
    assert.equal(first.status, 403);
    const [trace] = (await svcJson<{ traces: { error: string }[] }>(far, 'trace')).traces;
    assert.equal(trace?.error, 'access_pending');
    const request = await only();
    assert.deepEqual(first.body, {
      error: 'access_pending',
      message: (first.body as { message: string }).message,
      details: { retry_after_s: 60, request: request.id },
    });
    assert.equal(first.headers.get('retry-after'), '60');
    assert.equal(first.headers.get('svc-access-request'), request.id);
    assert.deepEqual(
      { ...request, first_at: '', last_at: '', expires_at: '' },
      {
        ...{ id: request.id, aid, caller: guest, label: null, known: false, kind: 'call', asked: 'POST /order' },
        ...{ tool: null, name: 'Ada', note: 'It is me, Ada [31m', state: 'pending', count: 1 },
        ...{ first_at: '', last_at: '', expires_at: '' },
      },
    );
    // The same exchange continues after the decision. Until then nothing reaches the service.
    const waiting = far.request('POST', `/fetch/${aid}`, { ...body, wait_s: 60 });
    await eventually('it asks again', async () => (await only()).count === 2);
    assert.deepEqual(service.seen, untouched);
    assert.match(await svcOk(home, 'status'), /1 access request \(svc access requests\)/);
    assert.match(await svcOk(home, 'access', 'requests'), /POST \/order[^]*Notes, written by the callers:\n/);
    await svcOk(home, 'access', 'allow', request.id, '--once');
    const passed = await waiting;
    assert.equal(passed.status, 200, JSON.stringify(passed.body));
    assert.equal(service.seen.requests, 1);

    const again = await svc(far, ['get', aid, '/']);
    assert.equal(again.code, 4);
    assert.match(again.stderr, /--wait 60/);
    assert.equal(service.seen.requests, 1);
    const second = await only();
    assert.notEqual(second.id, request.id);
    await svcOk(home, 'access', 'refuse', second.id, '--for', '1h');
    assert.equal((await far.request('POST', `/fetch/${aid}`, body)).status, 403);
    assert.deepEqual(await requests(), []);
    const { deny } = await home.call<{ deny: { id: string; expires_at?: string }[] }>('GET', `/agents/${aid}/acl`);
    assert.ok(deny[0]?.expires_at !== undefined);
    await home.call('DELETE', `/agents/${aid}/acl/deny/${deny[0]?.id}`);
  });

  test('a streamed body through the gateway waits on its client, and then passes in the same exchange', async () => {
    const before = service.seen.requests;
    const init: RequestInit & { readonly duplex: 'half' } = {
      method: 'POST',
      headers: { prefer: 'respond-async, wait=60', 'svc-access-note': 'stream', 'svc-local-aid': guest },
      body: ReadableStream.from([Buffer.from('a'), Buffer.from('b')]),
      duplex: 'half',
    };
    const waiting = fetch(`${far.api}/aid/${aid}/upload`, init);
    const request = await eventually('it asks', async () => (await requests())[0]);
    assert.equal(request.note, 'stream');
    assert.equal(service.seen.requests, before);
    await svcOk(home, 'access', 'allow', request.id, '--once');
    assert.equal(await (await waiting).text(), 'served');
    assert.equal(service.seen.requests, before + 1);
  });

  test('an exchange that was allowed once survives SIGKILL and a restart, and is used up once', async () => {
    assert.equal((await far.request('POST', `/fetch/${aid}`, { path: '/' })).status, 403);
    const request = await only();
    await svcOk(home, 'access', 'allow', request.id, '--once');
    await home.kill('SIGKILL');
    home = await TestDaemon.start({ dataDir: dir, args: [...args, '--bootstrap', far.dhtAddress] });
    await ready(home);
    assert.equal((await only()).state, 'allowed_once');
    const before = service.seen.requests;
    await svcOk(home, 'agents', 'publish', aid);
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => far.request('POST', `/fetch/${aid}`, { path: '/', timeout_ms: 60_000 })),
    );
    assert.deepEqual(
      answers.map(({ status }) => status).sort((a, b) => a - b),
      [200, 403, 403, 403],
    );
    assert.equal(service.seen.requests, before + 1);
    await home.kill('SIGKILL');
    home = await TestDaemon.start({ dataDir: dir, args: [...args, '--bootstrap', far.dhtAddress] });
    await ready(home);
    await svcOk(home, 'agents', 'publish', aid);
    assert.equal((await far.request('POST', `/fetch/${aid}`, { path: '/', timeout_ms: 60_000 })).status, 403);
    assert.equal(service.seen.requests, before + 1);
    await svcOk(home, 'access', 'refuse', (await only()).id);
    const { deny } = await home.call<{ deny: { id: string }[] }>('GET', `/agents/${aid}/acl`);
    await home.call('DELETE', `/agents/${aid}/acl/deny/${deny[0]?.id}`);
  });

  test('a tunnel waits; one connection passes, and the next one asks again', async () => {
    const seen = { ...service.seen };
    const refused = await far.request('POST', `/tunnel/${aid}`, {});
    assert.equal((refused.body as { error: string }).error, 'access_pending');
    const waiting = svcJson<{ listen: string }>(far, 'tunnel', 'open', aid, '--wait', '60', '--note', 'ssh');
    const request = await eventually('it asks again', async () =>
      (await requests()).find(({ note }) => note === 'ssh'),
    );
    assert.equal(request.kind, 'tunnel');
    assert.deepEqual(service.seen, seen);
    await svcOk(home, 'access', 'allow', request.id, '--once');
    const { listen } = await waiting;
    assert.match(await overTunnel(listen), /served/);
    const used = { ...service.seen };
    assert.equal(await overTunnel(listen), '');
    const again = await eventually('the next connection asks', async () => (await requests())[0]);
    assert.deepEqual([again.kind, again.state], ['tunnel', 'pending']);
    assert.deepEqual(service.seen, used);
    await svcOk(home, 'access', 'allow', again.id, '--for', '1h');
    assert.match(await overTunnel(listen), /served/);
    assert.match(await overTunnel(listen), /served/);
  });

  test('a chat request is decided in the same list', async () => {
    await svcOk(far, 'chat', 'request', aid, '--note', 'hello');
    const request = await eventually('the chat request', async () =>
      (await requests()).find(({ kind }) => kind === 'chat'),
    );
    assert.equal(request.note, 'hello');
    assert.equal((await home.request('POST', `/access/requests/${request.id}/allow`, { once: true })).status, 400);
    await svcOk(home, 'access', 'allow', request.id);
    await eventually('they are friends', async () => {
      const { friends } = await far.call<{ friends: unknown[] }>('GET', `/agents/${guest}/chat/contacts`);
      return friends.length === 1;
    });
    assert.deepEqual(await requests(), []);
  });

  test('one use of one tool of a shared MCP server', async () => {
    const share = new ShareCommand(
      home,
      '--name',
      'notes',
      '--save-master',
      join(dir, 'k'),
      '--',
      process.execPath,
      FIXTURE,
    );
    try {
      const { aid: server } = await share.reported();
      await svcOk(home, 'agents', 'acl', 'default', server, 'ask');
      const open = { local_aid: guest };
      const refused = await far.request('POST', `/origins/${server}`, open);
      assert.equal((refused.body as { error: string }).error, 'access_pending', JSON.stringify(refused.body));
      await svcOk(home, 'access', 'allow', (await only()).id, '--once', '--tools', 'echo');
      const { url } = await far.call<{ url: string }>('POST', `/origins/${server}`, open);
      const client = await connected(new StreamableHTTPClientTransport(new URL('/mcp', url)), LEGACY);
      await assert.rejects(client.callTool({ name: 'who', arguments: {} }), /access_/);
      const output = await client.callTool({ name: 'echo', arguments: { text: 'once' } });
      assert.match(JSON.stringify(output), /once/);
      await assert.rejects(client.callTool({ name: 'echo', arguments: { text: 'twice' } }), /access_pending/);
      const again = await only();
      assert.deepEqual([again.kind, again.aid, again.state], ['call', server, 'pending']);
      // From now on, with that tool only.
      await svcOk(home, 'access', 'allow', again.id, '--tools', 'echo');
      for (const text of ['one', 'two'])
        assert.match(JSON.stringify(await client.callTool({ name: 'echo', arguments: { text } })), new RegExp(text));
      await assert.rejects(client.callTool({ name: 'who', arguments: {} }));
      await client.close();
    } finally {
      await share.end('SIGTERM');
    }
  });

  test('strangers of one node have a small part, and a known contact still finds room', async () => {
    const strangers = await Promise.all(Array.from({ length: 40 }, () => far.newAgent()));
    const codes: unknown[] = [];
    for (const local_aid of strangers)
      codes.push(
        ((await far.request('POST', `/fetch/${aid}`, { path: '/', local_aid })).body as { error: string }).error,
      );
    assert.ok(codes.includes('access_pending') && codes.includes('rate_limited'), codes.join(' '));
    assert.ok((await requests()).length <= 32);
    const friend = await far.newAgent();
    await svcOk(home, 'alias', 'add', 'ada', friend);
    const asked = await far.request('POST', `/fetch/${aid}`, { path: '/', local_aid: friend });
    assert.equal((asked.body as { error: string }).error, 'access_pending');
    const [first] = await requests();
    assert.deepEqual([first?.caller, first?.known], [friend, true]);
    for (const { id } of await requests()) await home.call('POST', `/access/requests/${id}/refuse`, {});
    assert.deepEqual(await requests(), []);
  });
});
