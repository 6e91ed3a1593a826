import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { systemClock, type Timer } from '../../../src/foundation/clock.ts';
import { MAX_SHARED_MESSAGE_BYTES } from '../../../src/surfaces/mcp/message-reader.ts';
import { Gate, ToolRules } from '../../../src/surfaces/mcp-share/gate.ts';
import {
  MAX_CALLER_BACKLOG_BYTES,
  MAX_ID_CHARS,
  MAX_MESSAGE_VALUES,
  MAX_PROCESSES_PER_CALLER,
  MAX_SHARED_PROCESSES,
  SHARED_IDLE_MS,
} from '../../../src/surfaces/mcp-share/limits.ts';
import { lineOf } from '../../../src/surfaces/mcp-share/messages.ts';
import { open } from '../../../src/surfaces/mcp-share/open.ts';
import { serverEnvironment } from '../../../src/surfaces/mcp-share/server-process.ts';
import { StdioShare } from '../../../src/surfaces/mcp-share/stdio-share.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { LeapClock } from '../../support/leap-clock.ts';
import {
  AGENT,
  ALICE,
  callOf,
  connected,
  everything,
  FIXTURE,
  LEGACY,
  MALLORY,
  MODERN,
} from '../../support/shared-mcp.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Counts the plans to end an idle session. */
class IdleClock extends LeapClock {
  planned = 0;

  override after(ms: number, task: () => void): Timer {
    if (ms === SHARED_IDLE_MS) this.planned++;
    return super.after(ms, task);
  }
}

interface Shared {
  readonly gate: Gate;
  readonly log: string[];
  readonly client: (caller: string, revision: string) => Promise<Client>;
  /** Number of streams that clients have opened for notifications of the server. */
  readonly streams: () => number;
}

interface Options {
  readonly args?: readonly string[];
  readonly lists?: ReadonlyMap<string, ReadonlySet<string>>;
  readonly clock?: LeapClock;
  /** Lines that the server writes to its standard output when it starts. */
  readonly noise?: string;
}

async function share(t: TestContext, { args = [], lists = new Map(), clock, noise }: Options = {}): Promise<Shared> {
  const log: string[] = [];
  const plain = { command: process.execPath, args: [FIXTURE, ...args] };
  const noisy = { command: 'sh', args: ['-c', 'echo "$1"; exec "$0" "$2"', process.execPath, noise ?? '', FIXTURE] };
  const { begin } = await open(noise === undefined ? plain : noisy, {
    environment: { ...process.env, SVC_TOKEN: 'secret' },
    log: (text) => log.push(text),
    lists,
    clock: clock ?? systemClock,
  });
  const gate = await begin(AGENT);
  t.after(() => gate.close());
  let streams = 0;
  const send: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (init?.method === 'GET' && answer.ok) streams++;
    return answer;
  };
  const client = async (caller: string, revision: string): Promise<Client> => {
    const transport = new StreamableHTTPClientTransport(new URL(`http://${gate.address}/mcp`), {
      fetch: callOf(caller, clock === undefined ? { send } : { clock, send }),
    });
    const made = await connected(transport, revision);
    t.after(() => made.close());
    return made;
  };
  return { gate, log, client, streams: () => streams };
}

async function direct(t: TestContext, revision: string): Promise<Client> {
  const transport = new StdioClientTransport({ command: process.execPath, args: [FIXTURE], stderr: 'ignore' });
  const client = await connected(transport, revision);
  t.after(() => client.close());
  return client;
}

/** True also for a zombie process. */
function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform === 'linux' && readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

/** The response of a server to the request with ID 0, which starts a session. */
const BEGUN = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  result: { protocolVersion: LEGACY, capabilities: {}, serverInfo: { name: 'shell', version: '1' } },
});

/** Shares a server that is a shell script. */
async function shellShare(t: TestContext, script: string) {
  const command = { command: 'sh', args: ['-c', script], environment: {}, log: () => {}, graceMs: 50 };
  const shared = new StdioShare({ command, isModern: false, rules: new ToolRules(new Map()), clock: systemClock });
  const gate = await Gate.open({ agent: AGENT, backend: shared, clock: systemClock, log: () => {} });
  t.after(() => gate.close());
  const post = (caller: string, body: string, session: string, { rest = true } = {}): Promise<Response> => {
    const known = session === '' ? {} : { 'mcp-session-id': session, 'mcp-protocol-version': LEGACY };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...known };
    const send: typeof fetch = async (input, init) => {
      if (rest) return fetch(input, init);
      const reported = Object.fromEntries(new Headers(init?.headers));
      const asking = request(input instanceof Request ? input.url : input, {
        method: 'POST',
        headers: { ...reported, 'content-length': body.length },
      });
      asking.on('error', () => {});
      t.after(() => asking.destroy());
      await new Promise((resolve) => asking.write(body.slice(0, -1), resolve));
      return new Response();
    };
    return callOf(caller, { send })(`http://${gate.address}/mcp`, { method: 'POST', headers, body });
  };
  /** The ID of a new session; empty if none was started. */
  const begin = async (caller: string): Promise<string> => {
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'judge', version: '1' } };
    const answer = await post(caller, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }), '');
    await answer.text();
    return answer.headers.get('mcp-session-id') ?? '';
  };
  return { shared, begin, post };
}

function textOf(result: unknown): string {
  const { content } = result as { content: { text: string }[] };
  return content[0]?.text ?? '';
}

describe('a shared server over stdio', () => {
  test('a server that does not start is reported with advice', async () => {
    const options = { environment: process.env, log: () => {}, lists: new Map(), clock: systemClock };
    const opening = open({ command: '/nonexistent/server', args: [] }, options);
    await assert.rejects(opening, { code: 'connect_failed', message: /ENOENT.*alone to see the reason/ });
  });

  test('a request without a session ID gets the name of the missing header', async (t) => {
    const { gate } = await share(t);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const answer = await callOf(ALICE)(`http://${gate.address}/mcp`, { method: 'POST', headers, body });
    assert.equal(answer.status, 400);
    assert.match(await answer.text(), /Mcp-Session-Id header is required/);
  });

  for (const revision of [LEGACY, MODERN])
    test(`${revision}: a client sees the same through the share as directly`, async (t) => {
      const shared = await share(t);
      const [through, without] = [await shared.client(ALICE, revision), await direct(t, revision)];
      assert.deepEqual(await everything(through), await everything(without));
      await eventually('the server sees the cancellation', () => shared.log.join('').includes('given up'));
    });

  for (const revision of [LEGACY, MODERN]) {
    test(`${revision}: the server learns the proven caller, whatever the caller claims`, async (t) => {
      const { client } = await share(t);
      const alice = await client(ALICE, revision);
      const spoofed = { 'svcd/caller': MALLORY, 'svcd/other': 'x', mine: 1 };
      const output = JSON.parse(textOf(await alice.callTool({ name: 'who', _meta: spoofed })));
      assert.equal(output.env, ALICE);
      assert.equal(output.meta['svcd/caller'], ALICE);
      assert.equal(output.meta['svcd/other'], undefined);
      assert.equal(output.meta.mine, 1);
    });

    test(`${revision}: a caller sees and calls only its allowed tools, others see all`, async (t) => {
      const { client } = await share(t, { lists: new Map([[ALICE, new Set(['echo', 'count'])]]) });
      const [alice, other] = [await client(ALICE, revision), await client(MALLORY, revision)];
      const names = async (of: Client): Promise<string[]> => (await of.listTools()).tools.map(({ name }) => name);
      assert.deepEqual(await names(alice), ['echo', 'count']);
      assert.ok((await names(other)).length > 2);
      assert.equal(textOf(await alice.callTool({ name: 'echo', arguments: { a: 1 } })), '{"a":1}');
      await assert.rejects(alice.callTool({ name: 'who' }), { code: -32602 });
      assert.match(textOf(await other.callTool({ name: 'who' })), /svcd\/caller/);
    });

    test(`${revision}: a crash of the server is an immediate error, and the next session starts it again`, async (t) => {
      const { client, log } = await share(t);
      const alice = await client(ALICE, revision);
      const hanging = assert.rejects(alice.callTool({ name: 'hang' }), /has stopped/);
      // Each call uses a separate connection.
      await eventually('it hangs', () => log.join('').includes('hanging'));
      await Promise.all([hanging, assert.rejects(alice.callTool({ name: 'die' }), /has stopped/)]);
      const again = await client(ALICE, revision);
      assert.equal(textOf(await again.callTool({ name: 'echo', arguments: {} })), '{}');
    });

    test(`${revision}: odd output of a server ends no call but its own`, {
      skip: process.platform === 'win32',
    }, async (t) => {
      const noise = 'up\n{"level":"info","msg":"up"}\n[]\nnull\n{"jsonrpc":"2.0","id":"none","result":{}}';
      const { client, log } = await share(t, { noise });
      const alice = await client(ALICE, revision);
      const file = join(temporaryDirectory(t), 'go on');
      const waiting = alice.callTool({ name: 'until', arguments: { file } });
      await eventually('it waits', () => log.join('').includes('waiting'));
      const big = alice.callTool({ name: 'big', arguments: { size: MAX_SHARED_MESSAGE_BYTES } });
      await assert.rejects(big, { code: -32000, message: /The message is longer than 10485760 bytes/ });
      writeFileSync(file, '');
      assert.equal(textOf(await waiting), 'it is there');
      assert.match(log.join(''), /writes to its standard output what is no MCP message/);
    });

    test(`${revision}: callers have separate processes`, async (t) => {
      const { client } = await share(t);
      const [alice, other] = [await client(ALICE, revision), await client(MALLORY, revision)];
      const hanging = other.callTool({ name: 'echo' });
      await assert.rejects(alice.callTool({ name: 'die' }), /has stopped/);
      await hanging;
      assert.equal(JSON.parse(textOf(await other.callTool({ name: 'who' }))).env, MALLORY);
    });
  }

  test('requests without a valid proof are rejected', async (t) => {
    const { gate } = await share(t);
    const url = `http://${gate.address}/mcp`;
    const refused = async (answer: Promise<Response>): Promise<void> => assert.equal((await answer).status, 403);
    await refused(fetch(url, { method: 'POST', headers: { 'svc-caller-aid': ALICE }, body: '{}' }));
    await refused(callOf(ALICE, { key: Buffer.alloc(32) })(url, { method: 'POST', body: '{}' }));
    // A proof is valid for one method and one path.
    let seen = new Headers();
    const spy: typeof fetch = (_input, init) => {
      seen = new Headers(init?.headers);
      return Promise.resolve(new Response());
    };
    await callOf(ALICE, { send: spy })(url, { method: 'GET' });
    await refused(fetch(url, { method: 'POST', headers: seen, body: '{}' }));
    await refused(fetch(`${url}?x`, { headers: seen }));
    seen.set('svc-caller-aid', MALLORY);
    await refused(fetch(url, { headers: seen }));
  });

  test('a session belongs to the caller that started it', async (t) => {
    const { gate, client } = await share(t);
    const alice = await client(ALICE, LEGACY);
    const { transport } = alice;
    assert.ok(transport instanceof StreamableHTTPClientTransport);
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': transport.sessionId ?? '',
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const url = `http://${gate.address}/mcp`;
    assert.equal((await callOf(MALLORY)(url, { method: 'POST', headers, body })).status, 404);
    const own = await callOf(ALICE)(url, { method: 'POST', headers, body });
    assert.equal(own.status, 200);
    await own.text();
  });

  test('sessions are limited per caller, and stop when idle', async (t) => {
    const clock = new LeapClock();
    const { client, streams } = await share(t, { clock });
    const clients: Client[] = [];
    for (let i = 0; i < MAX_PROCESSES_PER_CALLER; i++) clients.push(await client(ALICE, LEGACY));
    await assert.rejects(client(ALICE, LEGACY), /Too many sessions/);
    // An open stream keeps its session in use, even if it is silent for half an hour.
    await eventually('each has a stream', () => streams() === clients.length);
    const [first] = clients;
    clock.pass(SHARED_IDLE_MS + 1);
    assert.ok(first !== undefined);
    assert.equal(textOf(await first.callTool({ name: 'echo', arguments: {} })), '{}');
    await Promise.all(clients.map((one) => one.close()));
    await eventually('streams are closed and the sessions idle', async () => {
      clock.pass(SHARED_IDLE_MS + 1);
      return await client(ALICE, LEGACY).then(
        () => true,
        () => false,
      );
    });
  });

  test('a session with a pending request is not idle, although its client has lost the stream', async (t) => {
    const clock = new IdleClock();
    const { gate } = await share(t, { clock });
    const url = `http://${gate.address}/mcp`;
    let session = {};
    const post = (message: object, signal?: AbortSignal): Promise<Response> =>
      callOf(ALICE, { clock })(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...session },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
        ...(signal === undefined ? {} : { signal }),
      });
    const clientInfo = { name: 'test', version: '1.0.0' };
    const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo };
    const begun = await post({ id: 0, method: 'initialize', params });
    session = { 'mcp-session-id': begun.headers.get('mcp-session-id') };
    await begun.text();
    await (await post({ method: 'notifications/initialized' })).text();
    const lost = new AbortController();
    await post({ id: 1, method: 'tools/call', params: { name: 'hang', arguments: {} } }, lost.signal);
    const before = clock.planned;
    lost.abort();
    await eventually('the session has no client', () => clock.planned > before);
    clock.pass(SHARED_IDLE_MS + 1);
    const listed = await post({ id: 2, method: 'tools/list' });
    assert.equal(listed.status, 200);
    await listed.text();
  });

  test('oversized messages, invalid JSON and batches are rejected', async (t) => {
    const { gate } = await share(t);
    const url = `http://${gate.address}/mcp`;
    const post = async (body: string, type = 'application/json'): Promise<number> => {
      const headers = { 'content-type': type, accept: 'application/json, text/event-stream' };
      const answer = await callOf(ALICE)(url, { method: 'POST', headers, body });
      await answer.text();
      return answer.status;
    };
    assert.equal(await post('x'.repeat(MAX_SHARED_MESSAGE_BYTES + 1)), 413);
    assert.equal(await post('{'), 400);
    assert.equal(await post('[]'), 400);
    assert.equal(await post('{}', 'text/plain'), 415);
    const twin = { name: 'echo', Name: 'who', arguments: {} };
    assert.equal(await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: twin })), 400);
    assert.equal(await post('{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}'), 400);
    assert.equal(await post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), 400);
    const manyValues = `{"jsonrpc":"2.0","method":"x","params":{"a":[${'1,'.repeat(MAX_MESSAGE_VALUES)}1]}}`;
    assert.equal(await post(manyValues), 413);
    const message = { jsonrpc: '2.0', id: 1, method: 'x' };
    assert.equal(await post(JSON.stringify({ ...message, id: 'x'.repeat(MAX_ID_CHARS + 1) })), 400);
    const progressToken = 'x'.repeat(MAX_ID_CHARS + 1);
    assert.equal(await post(JSON.stringify({ ...message, params: { _meta: { progressToken } } })), 400);
    assert.equal(await post(JSON.stringify({ ...message, params: { text: ','.repeat(MAX_MESSAGE_VALUES) } })), 400);
  });

  test('a caller with a stuck server or incomplete messages has its own byte limit', {
    skip: process.platform === 'win32',
  }, async (t) => {
    const { begin, post } = await shellShare(t, `read -r line; echo '${BEGUN}'; sleep 1000`);
    const [mallory, alice] = [await begin(MALLORY), await begin(ALICE)];
    const message = (size: number): string =>
      JSON.stringify({ jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(size) } });
    const half = MAX_CALLER_BACKLOG_BYTES / 2;
    assert.equal((await post(MALLORY, message(half), mallory)).status, 202);
    assert.equal((await post(MALLORY, message(half), mallory)).status, 429);
    assert.equal((await post(ALICE, message(half), alice)).status, 202);
    await post(MALLORY, message(half), mallory, { rest: false });
    assert.equal((await post(ALICE, message(1000), alice)).status, 202);
  });

  test('a caller with all processes loses one to a caller without any', {
    skip: process.platform === 'win32',
  }, async (t) => {
    const { begin, shared } = await shellShare(t, `while read -r line; do echo '${BEGUN}'; done`);
    const callers = Array.from({ length: MAX_SHARED_PROCESSES / MAX_PROCESSES_PER_CALLER }, () => newIdentity().aid);
    for (const caller of callers)
      for (let i = 0; i < MAX_PROCESSES_PER_CALLER; i++) assert.notEqual(await begin(caller), '');
    assert.notEqual(await begin(ALICE), '');
    assert.equal(await begin(callers[1] ?? ''), '', 'the quota is used up');
    await eventually('another process has stopped', () => shared.processes === MAX_SHARED_PROCESSES);
  });

  test('a crash of the server is an immediate error, even if a process that it left behind holds its output', {
    skip: process.platform === 'win32',
  }, async (t) => {
    const pidFile = join(temporaryDirectory(t), 'pids');
    const { begin } = await open(
      {
        command: 'sh',
        args: ['-c', 'sleep 1000 & echo $! >>"$2"; exec "$0" "$1"', process.execPath, FIXTURE, pidFile],
      },
      { environment: process.env, log: () => {}, lists: new Map(), clock: systemClock, graceMs: 50 },
    );
    const gate = await begin(AGENT);
    t.after(() => gate.close());
    const url = new URL(`http://${gate.address}/mcp`);
    const client = await connected(new StreamableHTTPClientTransport(url, { fetch: callOf(ALICE) }), LEGACY);
    await assert.rejects(client.callTool({ name: 'die' }), /has stopped/);
    for (const pid of readFileSync(pidFile, 'utf8').trim().split('\n').map(Number))
      await eventually(`${pid} has exited`, () => hasEnded(pid));
    await client.close().catch(() => {});
  });

  test('a server behind a wrapper is stopped with it, even if it ignores signals', {
    skip: process.platform === 'win32',
  }, async (t) => {
    const pidFile = join(temporaryDirectory(t), 'pids');
    // It ignores the end of its input and SIGTERM, and the shell waits for it.
    const stubborn = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000);
      (await import('node:fs')).appendFileSync(${JSON.stringify(pidFile)}, process.pid + '\\n');`;
    const loaded = `data:text/javascript,${encodeURIComponent(stubborn)}`;
    const { begin } = await open(
      { command: 'sh', args: ['-c', '"$0" --import "$1" "$2"; true', process.execPath, loaded, FIXTURE] },
      { environment: process.env, log: () => {}, lists: new Map(), clock: systemClock, graceMs: 50 },
    );
    const gate = await begin(AGENT);
    const url = new URL(`http://${gate.address}/mcp`);
    const client = await connected(new StreamableHTTPClientTransport(url, { fetch: callOf(ALICE) }), LEGACY);
    assert.equal(textOf(await client.callTool({ name: 'echo', arguments: {} })), '{}');
    await gate.close();
    await client.close().catch(() => {});
    const pids = readFileSync(pidFile, 'utf8').trim().split('\n').map(Number);
    assert.ok(pids.length > 1, 'the inspection and the session');
    for (const pid of pids) await eventually(`${pid} has exited`, () => hasEnded(pid));
  });

  test('its environment contains no secrets of svcd', () => {
    const own = { PATH: '/bin', SVC_TOKEN: 'a', SVCD_DATA_DIR: 'b', svc_caller_aid: 'c', GONE: undefined };
    assert.deepEqual(serverEnvironment(own), { PATH: '/bin' });
  });
});

test('a message is one line for every reader', () => {
  const line = lineOf({ jsonrpc: '2.0', method: 'x', params: { a: '\u2028b\u2029c\u0085' } });
  assert.equal(line, '{"jsonrpc":"2.0","method":"x","params":{"a":"\\u2028b\\u2029c\\u0085"}}\n');
});
