import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { shortSize } from '../../../src/surfaces/cli/reach-text.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const [aid, node] = [newIdentity().aid, newIdentity().aid];

interface Probed {
  readonly path: string | null;
  readonly rtt_ms: number | null;
}

/** Runs `svc` against a daemon with these ping results in sequence. The last one repeats. */
async function pinged(t: TestContext, outcomes: readonly Probed[], ...args: readonly string[]) {
  const asked: unknown[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const { path = null, rtt_ms = null } = outcomes[Math.min(asked.length, outcomes.length - 1)] ?? {};
      asked.push(JSON.parse(body));
      response.setHeader('content-type', 'application/json');
      if (path === 'gone')
        return response.writeHead(502).end(JSON.stringify({ error: 'connect_failed', message: 'Gone.' }));
      const is_relayed = path === 'relay';
      const received = rtt_ms === null ? 0 : 1;
      const not_direct = is_relayed ? { code: 'looking', text: 'Still looking.' } : null;
      const times = rtt_ms === null ? null : { min: rtt_ms, avg: rtt_ms, max: rtt_ms };
      const rest = { aid, node, sent: 1, received, rtt_ms: times, path, is_relayed, remote_addr: '192.0.2.1:4122' };
      return response.end(JSON.stringify({ ...rest, not_direct, probes: [{ rtt_ms, path, is_relayed }] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const api = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { ...(await runSvc(['--api', api, 'ping', aid, '--interval', '0.1', ...args])), asked };
}

test('prints one line per response, and a summary', async (t) => {
  const outcomes = [
    { path: 'relay', rtt_ms: 30 },
    { path: null, rtt_ms: null },
    { path: 'relay', rtt_ms: 10 },
  ];
  const { code, stdout, asked } = await pinged(t, outcomes, '-c', '3', '--no-relay', '--timeout', '2.5');
  assert.equal(code, 0);
  assert.deepEqual(stdout.split('\n'), [
    '1: 30.0 ms, relay, 192.0.2.1:4122',
    '2: no response',
    '3: 10.0 ms, relay, 192.0.2.1:4122',
    '3 probes, 2 answers, 33 % lost, min/avg/max 10.0/20.0/30.0 ms, relay',
    'Not direct: Still looking.',
    '',
  ]);
  assert.deepEqual(
    asked,
    Array.from({ length: 3 }, () => ({ count: 1, disable_relay: true, timeout_ms: 2500 })),
  );
});

test('continues until the path is direct, and fails otherwise', async (t) => {
  const [relay, punched] = [
    { path: 'relay', rtt_ms: 30 },
    { path: 'punched', rtt_ms: 5 },
  ];
  const found = await pinged(t, [relay, relay, punched], '--until-direct', '--quiet');
  assert.deepEqual([found.code, found.stdout, found.asked.length], [0, 'punched 21.667\n', 3]);
  const never = await pinged(t, [relay], '--until-direct', '-c', '2');
  assert.deepEqual([never.code, never.asked.length], [1, 2]);
  assert.match(never.stderr, /no direct path/);
});

test('fails without a response, with the reason for programs', async (t) => {
  const silent = { path: null, rtt_ms: null };
  const { code, stdout } = await pinged(t, [silent], '-c', '2', '--json');
  const { sent, received, rtt_ms } = JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  assert.deepEqual([code, sent, received, rtt_ms], [1, 2, 0, null]);
});

test('counts probes of a vanished node as lost, and fails for one that never responded', async (t) => {
  const [there, gone] = [
    { path: 'relay', rtt_ms: 30 },
    { path: 'gone', rtt_ms: null },
  ];
  const left = await pinged(t, [there, gone], '-c', '2');
  assert.equal(left.code, 0);
  assert.match(left.stdout, /^2: no response\n2 probes, 1 answer, 50 % lost, .*relay$/m);
  const never = await pinged(t, [gone], '-c', '2');
  assert.deepEqual([never.code, never.stdout], [1, '']);
  assert.match(never.stderr, /^svc: Gone\.\n +See what blocks the connection: svc netcheck /);
});

test('rejects invalid times', async (t) => {
  for (const interval of ['0', '-1', 'soon', '3600'])
    assert.equal((await pinged(t, [], '--interval', interval)).code, 2, interval);
  assert.equal((await pinged(t, [], '-c', '0')).code, 2);
});

test('prints short sizes and AIDs', () => {
  assert.deepEqual([0, 1023, 1536, 200 * 1024 ** 2, 5 * 1024 ** 4].map(shortSize), [
    '0 bytes',
    '1023 bytes',
    '1.5 KiB',
    '200 MiB',
    '5.0 TiB',
  ]);
});

test('netcheck shows each explanation once, and says what is only known after an attempt', async (t) => {
  const note = 'The addresses of the node, in sequence.';
  const lan = (port: number) => ({ path: 'lan', after_ms: 0, to: [`192.0.2.1:${port}`], may_lead: null, note });
  const relay = { path: 'relay', after_ms: 500, to: [], may_lead: false, note: 'No relay is known.' };
  const checked = { aid, node, is_here: false, nat_type_label: 'cone', connection: null, not_direct: null };
  const daemon = await AnsweringDaemon.start(t, (line) =>
    line.includes('/netcheck/') ? [200, { ...checked, ways: [lan(1), lan(2), relay] }] : [404, { error: 'not_found' }],
  );
  const { stdout } = await runSvc(['--api', daemon.api, 'netcheck', aid]);
  const [table = '', notes = ''] = stdout.split('\n\n').slice(1);
  assert.match(table, /^PATH +AFTER +WORKS +TO\nlan +0 ms +unknown +192\.0\.2\.1:1\n[^]*\nrelay +500 ms +no\s*$/);
  assert.deepEqual(notes.trimEnd().split('\n'), [
    `lan: ${note}`,
    'relay: No relay is known.',
    'unknown: only an attempt shows whether it works.',
  ]);
});
