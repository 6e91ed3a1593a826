import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { EXITS } from '../../support/exits.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const other = newIdentity().aid;
const LONG_AGO = '2020-01-01T00:00:00.000Z';
const NEVER = '2999-01-01T00:00:00.000Z';

const AGENT = {
  aid,
  scheme: 'native',
  status: 'registered',
  service_tcp: '',
  service_tcp_ok: false,
  heartbeat_seconds_ago: 1,
  seq: 1,
  published: true,
  last_publish_at: LONG_AGO,
  next_republish_estimate: LONG_AGO,
  record_expires_at: NEVER,
  replicas: 1,
  services: [],
  acl: { default: 'public', allow: [], deny: [] },
  delegation: { issued_at: LONG_AGO, expires_at: null },
};

type Answers = Readonly<Record<string, readonly [status: number, body: object]>>;

/** Runs `svc` against a daemon with fixed responses, by method and path. */
async function answered(t: TestContext, answers: Answers, ...args: readonly string[]) {
  const server = createServer((request, response) => {
    const missing = [404, { error: 'not_found', message: 'This agent is not registered here.' }] as const;
    const [status, body] = answers[`${request.method} ${request.url}`] ?? missing;
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return runSvc(['--api', `127.0.0.1:${(server.address() as AddressInfo).port}`, ...args]);
}

test('suggests the missing slash of a path', async (t) => {
  const { code, stderr } = await answered(t, {}, 'get', aid, 'health');
  assert.equal(code, 2);
  assert.equal(stderr, `svc: A path must begin with "/": svc get ${aid} /health\n`);
});

test('errors name the option for people and the request member for programs', async (t) => {
  const error = { error: 'port_in_use', message: 'The port is in use. Choose another local_port.' };
  const answers: Answers = { [`POST /fetch/${aid}`]: [409, error] };
  assert.match((await answered(t, answers, 'get', aid)).stderr, /another --local-port\./);
  const shown: unknown = JSON.parse((await answered(t, answers, 'get', aid, '--json')).stderr);
  assert.deepEqual(shown, { ...error, details: {} });
});

test('explains protocol numbers', async (t) => {
  const endpoint = { aid, address: aid, endpoints: [], nat_type: 1, seq: 1, ttl: 3600 };
  const answers: Answers = {
    [`POST /resolve/${aid}`]: [200, { ...endpoint, timestamp: LONG_AGO, expires_at: NEVER }],
    [`GET /resolve/${aid}/records`]: [200, { records: [1, 2, 5, 0x11].map((rec_type) => ({ rec_type })) }],
  };
  assert.match((await answered(t, answers, 'resolve', aid)).stdout, /nat type: +1 \(public or full cone\)/);
  const { stdout } = await answered(t, answers, 'info', aid);
  assert.match(stdout, /records: +0x01 \(endpoints\), 0x02 \(profile\), 0x05, 0x11 \(note keys\)/);
});

test('shows an overdue renewal as due, and the service in a probe', async (t) => {
  const probe = { service_tcp_ok: false, tcp_error: 'ECONNREFUSED', dht_ok: false, published_endpoints: [] };
  const answers: Answers = {
    [`GET /agents/${aid}`]: [200, { ...AGENT, service_tcp: '127.0.0.1:9' }],
    [`GET /agents/${aid}/probe`]: [200, { ...probe, published_nat_type: null, published_seq: null }],
  };
  assert.match((await answered(t, answers, 'agents', 'get', aid)).stdout, /next renewal: +due now/);
  const { stdout } = await answered(t, answers, 'agents', 'probe', aid);
  assert.match(stdout, /service: +127\.0\.0\.1:9 does not respond: ECONNREFUSED/);
});

test('suggests "svc agents" if an agent is not registered here', async (t) => {
  for (const args of [
    ['note', 'send', aid, aid, '--text', 'x'],
    ['agents', 'export', aid],
  ]) {
    const { code, stderr } = await answered(t, {}, ...args);
    assert.equal(code, 5);
    assert.match(stderr, /This agent is not registered here\. "svc agents" lists your agents\./);
  }
});

test('binding another service needs --replace, and names the replaced one', async (t) => {
  const answers: Answers = {
    [`GET /agents/${aid}`]: [200, { ...AGENT, service_tcp: '127.0.0.1:80' }],
    [`PATCH /agents/${aid}`]: [200, { ...AGENT, service_tcp: '127.0.0.1:81' }],
  };
  for (const bind of [
    ['inbound', 'bind', '--aid', aid, '--addr'],
    ['agents', 'update', aid, '--service-tcp'],
  ]) {
    const refused = await answered(t, answers, ...bind, '127.0.0.1:81');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /is bound to 127\.0\.0\.1:80\. To replace it, say --replace/);
    const replaced = await answered(t, answers, ...bind, '127.0.0.1:81', '--replace');
    assert.match(replaced.stdout, /^Replaced 127\.0\.0\.1:80\.\s[^]*127\.0\.0\.1:81/);
    assert.equal((await answered(t, answers, ...bind, '127.0.0.1:80')).code, 0);
  }
  assert.equal((await answered(t, answers, 'agents', 'update', aid, '--service-tcp', '')).code, 0);
});

test('warns about a published agent without a service', async (t) => {
  const published = { ok: true, seq: 1, replicas: 1 };
  const answers = (service_tcp: string): Answers => ({
    [`GET /agents/${aid}`]: [200, { ...AGENT, service_tcp }],
    [`POST /agents/${aid}/services`]: [200, published],
  });
  const args = ['publish', 'lang.translate', '--aid', aid];
  assert.match((await answered(t, answers(''), ...args)).stderr, /No one can call it yet\. .*svc inbound bind --addr/);
  assert.equal((await answered(t, answers('127.0.0.1:80'), ...args)).stderr, '');
});

test('a record that no other node stores is not published', async (t) => {
  const answers = (published: boolean, replicas: number): Answers => ({
    [`GET /agents/${aid}`]: [200, { ...AGENT, published, replicas }],
    [`PATCH /agents/${aid}`]: [200, AGENT],
    [`POST /agents/${aid}/publish`]: [200, { ok: true, seq: 1, replicas }],
    [`POST /agents/${aid}/services`]: [200, { ok: true, seq: 1, replicas }],
  });
  const texts = async (...given: Parameters<typeof answers>) =>
    /^published: +(.*)$/m.exec((await answered(t, answers(...given), 'serve', '80', '--aid', aid)).stdout)?.[1];
  assert.match((await texts(false, 0)) ?? '', /^not yet: no other node stores it/);
  assert.equal(await texts(true, 0), 'yes, stored at this node for all other nodes');
  assert.equal(await texts(true, 2), 'yes, stored at 2 nodes');
  const { stdout } = await answered(t, answers(false, 0), 'publish', 'lang.translate', '--aid', aid);
  assert.match(stdout, /^Stored lang\.translate on this node/);
});

test('serve names only the uses that the service address admits', async (t) => {
  const texts = async (service_tcp: string) => {
    const answers: Answers = {
      [`GET /agents/${aid}`]: [200, { ...AGENT, service_tcp }],
      [`PATCH /agents/${aid}`]: [200, { ...AGENT, service_tcp }],
      [`POST /agents/${aid}/publish`]: [200, { ok: true, seq: 1, replicas: 1 }],
    };
    const { stderr } = await answered(t, answers, 'serve', service_tcp, '--aid', aid);
    return ['svc get', 'svc tunnel open'].filter((command) => stderr.includes(command));
  };
  assert.deepEqual(await texts('127.0.0.1:80'), ['svc get', 'svc tunnel open']);
  assert.deepEqual(await texts('http://127.0.0.1:80'), ['svc get']);
  assert.deepEqual(await texts('tcp://127.0.0.1:80'), ['svc tunnel open']);
});

test('denying an agent prints the command that undoes it', async (t) => {
  const answers: Answers = { [`POST /agents/${aid}/acl/deny`]: [200, { id: '0123456789abcdef' }] };
  const { stderr } = await answered(t, answers, 'agents', 'acl', 'deny', aid, aid);
  assert.match(stderr, /overrides every allow entry\. To remove it: svc agents acl rm \S+ deny 0123456789abcdef -y\n/);
});

test('shows configuration keys without a value', async (t) => {
  const answers: Answers = { 'GET /config': [200, { network: '', bootstrap: [], log_level: 'info' }] };
  const { stdout } = await answered(t, answers, 'config', 'get');
  assert.match(stdout, /network: +""\nbootstrap: +\[\]\nlog_level: +info/);
  assert.equal((await answered(t, answers, 'config', 'get', 'network', '--quiet')).stdout, '');
});

test('reports an unreadable file', async (t) => {
  const file = '/nonexistent/plan.pdf';
  const { code, stderr } = await answered(t, {}, 'object', 'put', file, '--aid', aid, '--json');
  assert.equal(code, 5);
  assert.deepEqual(JSON.parse(stderr), { error: 'not_found', message: `${file} cannot be read.`, details: {} });
});

test('reports a server that is not svcd', async (t) => {
  const { code, stderr } = await answered(t, { 'GET /status': [404, { hello: 'world' }] }, 'status');
  assert.equal(code, 3);
  assert.match(stderr, /is not svcd \(HTTP status 404\)/);
});

test('an invitation reports whether networks that allow only HTTPS can use it', async (t) => {
  const texts = async (reach: string, tls_ports: readonly number[]): Promise<string> => {
    const contacts = [`${aid}@203.0.113.7:4121`];
    const invitation = { invitation: `svc://${aid}/join/x`, network: '', contacts, reach, tls_ports };
    return (await answered(t, { 'GET /node/invitation': [200, invitation] }, 'invite')).stderr;
  };
  assert.match(await texts('anywhere', [443, 4121]), /need TCP port 443: open it in your firewall too/);
  assert.match(await texts('anywhere', [4121]), /cannot use it: this node does not listen on TCP port 443/);
  assert.doesNotMatch(await texts('helped', []), /HTTPS/);
});

test('status starts with pending items and shows readable sizes', async (t) => {
  const none = { mailbox: 0, chat_invites: 0, chat_unread: 0 };
  const status = {
    ...{
      node_aid: aid,
      version: '1.2.3',
      uptime_s: 61,
      network_ready: true,
      exit: EXITS['connect-proxy'],
      dht_peers: 2,
      dht_clients: 0,
      nat_type_label: 'cone',
    },
    ...{
      helpers: [],
      listen_addrs: ['0.0.0.0:4121'],
      observed_addrs: [],
      mapped_addrs: [],
      node_last_publish_at: null,
    },
    ...{ bytes_up: 1536, bytes_down: 5 * 1024 ** 2, tunnels_active: 0, data_dir: '/data' },
    relayed: { helps: true, sessions: 1, max_sessions: 9, bytes: 2048, dropped: 0 },
    lent_ports: {
      listen_addrs: ['[::]:4121'],
      failed_addrs: [{ address: '0.0.0.0:443', trouble: 'not_permitted' }],
      ...{ clients: 2, max_clients: 9, ports: 3, bytes: 4096, dropped: 0 },
    },
    pending: { [aid]: { ...none, mailbox: 2 }, [other]: { mailbox: 1, chat_invites: 1, chat_unread: 3 } },
  };
  const broken = { ...AGENT, service_tcp: '127.0.0.1:9', delegation: { issued_at: LONG_AGO, expires_at: LONG_AGO } };
  const agents = [broken, { ...AGENT, aid: other, published: false }];
  const answers: Answers = {
    'GET /status': [200, status],
    'GET /node/address-book': [200, { aliases: { [aid]: 'demo' }, favorites: [] }],
    'GET /agents?limit=50': [200, { agents }],
    'GET /agents?limit=200': [200, { agents }],
  };
  const shown = await answered(t, answers, 'status');
  const short = `${other.slice(0, 12)}…`;
  const [first, second, third, asks, notes, node] = shown.stdout.split('\n');
  const lent = { ...status.lent_ports, listen_addrs: [] };
  assert.match(
    (await answered(t, { ...answers, 'GET /status': [200, { ...status, lent_ports: lent }] }, 'status')).stdout,
    /^problems: +nodes without UDP cannot connect at 0\.0\.0\.0:443\/tcp: the system does not permit it \(see svc doctor\)$/m,
  );
  assert.match(first ?? '', /^problems: +demo: its service at 127\.0\.0\.1:9 does not respond$/);
  assert.match(second ?? '', /^ +demo: its key expired \d+ days ago$/);
  assert.match(third ?? '', new RegExp(`^ +${short}: not published, .*svc agents publish ${other}`));
  assert.match(asks ?? '', /^pending: +demo: 2 notes$/);
  assert.match(notes ?? '', new RegExp(`^ +${short}: 1 chat request, 3 unread messages, 1 note$`));
  assert.match(node ?? '', new RegExp(`^node: +${aid}$`));
  assert.match(shown.stdout, new RegExp(`agents: +2, 1 published: demo, ${short}`));
  assert.match(shown.stdout, /listens on: +0\.0\.0\.0:4121, \[::\]:4121\/tcp$/m);
  assert.match(shown.stdout, /traffic: +1\.5 KiB up, 5\.0 MiB down/);
  assert.match(shown.stdout, /relayed for others: +1 session, 2\.0 KiB/);
  const calm = await answered(t, { 'GET /status': [200, { ...status, pending: {} }] }, 'status');
  assert.match(calm.stdout, /^node: [^]*agents: +none yet/m);
  const lonely = await answered(t, { 'GET /status': [200, { ...status, pending: {}, dht_peers: 0 }] }, 'status');
  assert.match(lonely.stdout, /^problems: +no other node is known\nnode: /);
  const lost = { ...status, pending: {}, lost_listen_hosts: ['192.0.2.9'] };
  const waiting = await answered(t, { 'GET /status': [200, lost] }, 'status');
  assert.match(waiting.stdout, /^problems: +this machine has lost its listen address 192\.0\.2\.9\. The node waits/);
  assert.match(
    shown.stdout,
    /way out: +over TLS through helper 203\.0\.113\.10:443, through the proxy 10\.2\.0\.1:3128/,
  );
  for (const [free, says] of [
    [
      40 * 1024 ** 2,
      /^problems: +the disk is full: only 40\.0 MiB are free for \/data\. svcd cannot store anything\n +no other/,
    ],
    [400 * 1024 ** 2, /^problems: +the disk is almost full: only 400(?:\.0)? MiB are free for \/data\n +no other/],
    [500 * 1024 ** 2, /^problems: +no other/],
  ] as const) {
    const full = { ...status, pending: {}, dht_peers: 0, disk_free_bytes: free };
    assert.match((await answered(t, { 'GET /status': [200, full] }, 'status')).stdout, says);
  }
  const shut = { ...status, exit: EXITS.portal, network_ready: false, dht_peers: 0, pending: {} };
  const captive = await answered(t, { 'GET /status': [200, shut] }, 'status');
  assert.match(
    captive.stdout,
    /^problems: +No node answers over UDP\. TLS does not work either\. This network wants a login/,
  );
  assert.doesNotMatch(captive.stderr, /svc invite/);
});

test('accepts configuration lists with commas, as JSON or as one value', async (t) => {
  const sent: unknown[] = [];
  const types = { bootstrap: 'array', api_token: 'string', min_observed_peers: 'integer' };
  const properties = Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }]));
  const daemon = await AnsweringDaemon.start(t, (line, body) => {
    if (line === 'GET /config/schema') return [200, { properties }];
    sent.push(body);
    return [200, { ok: true, restart_required: [], overridden: [] }];
  });
  for (const [key, value] of [
    ['bootstrap', 'a:1, b:2'],
    ['bootstrap', '["a:1"]'],
    ['bootstrap', 'a'],
    ['bootstrap', ''],
    ['api_token', '123,4'],
    ['min_observed_peers', '5'],
  ] as const)
    await runSvc(['config', 'set', key, value], { env: { SVC_API: daemon.api } });
  assert.deepEqual(sent, [
    { bootstrap: ['a:1', 'b:2'] },
    { bootstrap: ['a:1'] },
    { bootstrap: ['a'] },
    { bootstrap: [] },
    { api_token: '123,4' },
    { min_observed_peers: 5 },
  ]);
});

test('the agent of a search must be registered here', async (t) => {
  const daemon = await AnsweringDaemon.start(t, (line) =>
    line === 'POST /discover'
      ? [200, { entries: [] }]
      : [404, { error: 'not_found', message: 'This agent is not registered here.' }],
  );
  const env = { SVC_API: daemon.api };
  assert.equal((await runSvc(['search', 'lang.translate'], { env })).code, 0);
  const { code, stderr } = await runSvc(['search', 'lang.translate', '--aid', aid], { env });
  assert.equal(code, 5);
  assert.match(stderr, /"svc agents" lists your agents/);
});

test('recognizes other programs at the address of svcd', async (t) => {
  const answers = ['<html></html>', '[]', '"x"', '1', 'null', '{}', '{"agents":1}', '', 'SSH-2.0-x', 'redirect'];
  for (const answer of answers) {
    const server = createServer((_request, response) => {
      if (answer === 'SSH-2.0-x') response.socket?.end(`${answer}\r\n`);
      else if (answer === 'redirect') response.writeHead(302, { location: '/x' }).end();
      else response.end(answer);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const env = { SVC_API: `127.0.0.1:${(server.address() as AddressInfo).port}` };
    for (const args of [
      ['status'],
      ['status', '--json'],
      ['agents', 'list'],
      ['alias', 'list'],
      ['tunnel', 'status'],
    ]) {
      // Programs receive objects unchanged: another version may have other members.
      if (args.includes('--json') && answer.startsWith('{')) continue;
      const { code, stderr } = await runSvc(args, { env });
      assert.deepEqual([code, stderr.includes('not svcd')], [3, true], `${args.join(' ')}, ${answer}: ${stderr}`);
    }
    const shown = await runSvc(['agents', 'list'], { env });
    assert.deepEqual([shown.code, /TypeError|undefined$/.test(shown.stderr)], [3, false], shown.stderr);
  }
});

test('rejects malformed addresses and tokens as wrong usage', async () => {
  for (const api of ['ftp://127.0.0.1', 'ws://x', 'http://']) {
    const { code, stderr } = await runSvc(['--api', api, 'status']);
    assert.deepEqual([code, /must be a URL without/.test(stderr)], [2, true], `${api}: ${stderr}`);
  }
  assert.match((await runSvc(['--api', 'HTTP://127.0.0.1:1', 'status'])).stderr, /at http:\/\/127\.0\.0\.1:1 /);
  const { code, stderr } = await runSvc(['status'], { env: { SVC_API: '127.0.0.1:1', SVC_TOKEN: 'a\nb' } });
  assert.deepEqual([code, /The API token contains/.test(stderr)], [2, true], stderr);
  assert.equal((await runSvc(['status'], { env: { SVC_API: '127.0.0.1:1', SVC_TOKEN: 'a\n' } })).code, 3);
});

test('names a replaced label', async (t) => {
  const answers: Answers = {
    'GET /node/address-book': [200, { aliases: { [aid]: 'bob' }, favorites: [] }],
    'PUT /node/address-book': [200, { aliases: { [aid]: 'bob2' }, favorites: [] }],
  };
  const { stderr } = await answered(t, answers, 'alias', 'add', 'bob2', aid);
  assert.equal(stderr, `Replaced the label "bob" of ${aid} with "bob2". Use --also to keep both.\n`);
  const { stdout } = await answered(t, answers, 'alias', 'add', 'bob2', aid, '--json');
  assert.deepEqual(JSON.parse(stdout), { ok: true, label: 'bob2', aid, replaced: 'bob' });
});

test('rejects "-" as a file with secrets', async () => {
  for (const args of [
    ['restore', '-'],
    ['agents', 'import', '-'],
    ['register', '--save-master', '-'],
  ]) {
    const { code } = await runSvc(args, { env: { SVC_API: '127.0.0.1:1' } });
    assert.ok(code === 2 || code === 3, args.join(' '));
  }
  const { code, stderr } = await runSvc(['backup', '-'], { terminal: true });
  assert.deepEqual([code, /is binary/.test(stderr)], [2, true], stderr);
});

test('follows a log across a restart and prints each line once', async (t) => {
  const line = (seq: number, at: string) => ({
    seq,
    at,
    level: 'info',
    component: null,
    message: `${at} ${seq}`,
    fields: {},
  });
  const old = [1, 2, 3].map((seq) => line(seq, LONG_AGO));
  const fresh = [1, 2, 3, 4].map((seq) => line(seq, NEVER));
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    const after = Number(new URL(request.url ?? '', 'http://x').searchParams.get('after_seq') ?? 0);
    // The old process has three lines and stops. A new one has four.
    if (asked === 3) return void response.destroy();
    const all = asked < 3 ? old.slice(0, asked + 1) : fresh;
    const lines = all.filter(({ seq }) => seq > after);
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ lines, last_seq: all.length }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const printed: string[] = [];
  // Accepts seven lines and closes, like head.
  const stdout = new Writable({
    decodeStrings: false,
    write: (chunk: unknown, _encoding, done) => {
      if (printed.length === 7) return done(Object.assign(new Error(), { code: 'EPIPE' }));
      printed.push(String(chunk).trim());
      done();
      if (printed.length === 7) stdout.destroy(Object.assign(new Error(), { code: 'EPIPE' }));
    },
  });
  const env = { SVC_API: `127.0.0.1:${(server.address() as AddressInfo).port}` };
  const { code, stderr } = await runSvc(['logs', '-f', '--json'], { env, stdout });
  assert.equal(code, 0);
  assert.match(stderr, /^$/);
  const seen = printed.map((text) => (JSON.parse(text) as { message: string }).message);
  assert.deepEqual(
    seen,
    [...old, ...fresh].map(({ message }) => message),
  );
});

test('an exchange is described by its permissions', async (t) => {
  const once = { kind: 'call', asked: 'GET /', tool: null, note: '', label: 'bob', count: 1, state: 'allowed_once' };
  const more = { id: '5f1c', aid: 'a', caller: 'b', known: true, first_at: '', last_at: '', expires_at: null };
  const requests = [
    { ...once, ...more },
    { ...once, ...more, kind: 'tunnel', asked: '' },
    { ...once, ...more, tools: ['search', 'read'] },
    { ...once, ...more, state: 'pending' },
  ];
  const daemon = await AnsweringDaemon.start(t, (line) =>
    line.startsWith('GET /access/requests') ? [200, { requests }] : [200, { ok: true, aliases: {}, agents: [] }],
  );
  const env = { SVC_API: daemon.api };
  const { stdout } = await runSvc(['access', 'requests'], { env });
  assert.match(stdout, /call GET \/ \(allowed, not used: one call with this method and path\)/);
  assert.match(stdout, /tunnel \(allowed, not used: one TCP connection\)/);
  assert.match(stdout, /call GET \/ \(allowed, not used: one call of these tools: search, read\)/);
  assert.match(stdout, /call GET \/ +1/);
  assert.match(
    (await runSvc(['access', 'allow', '5f1c', '--once'], { env })).stdout,
    /^Allowed once: one call with this method and path/,
  );
  const args = ['access', 'allow', '5f1c', '--once', '--tools', 'search'];
  assert.match((await runSvc(args, { env })).stdout, /^Allowed once: one call of these tools\./);
});

test('a search without results names the names that it finds', async (t) => {
  const daemon = await AnsweringDaemon.start(t, () => [200, { entries: [] }]);
  const { stdout, stderr } = await runSvc(['search', 'weather'], { env: { SVC_API: daemon.api } });
  assert.match(stdout, /No agent offers this service now\./);
  assert.match(stderr, /complete names only/);
});
