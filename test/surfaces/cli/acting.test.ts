import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [{ aid: one }, { aid: two }] = [newIdentity(), newIdentity()];

/** Two local agents. Commands can act as either. */
function answers(line: string): readonly [number, unknown] {
  if (/^GET \/agents\?limit=\d+$/.test(line)) return [200, { agents: [{ aid: one }, { aid: two }] }];
  if (line === 'GET /node/address-book') return [200, { aliases: { [two]: 'bob' }, favorites: [] }];
  const named = /^GET \/agents\/(\w+)$/.exec(line)?.[1];
  if (named === one || named === two) return [200, { aid: named, status: 'registered', service_tcp: '' }];
  if (named !== undefined) return [404, { error: 'not_found', message: 'This agent is not registered here.' }];
  return [200, { groups: [], body: '', status: 200 }];
}

test('commands use the selected agent of the local daemon if they name none', async (t) => {
  const bodies: unknown[] = [];
  const daemon = await AnsweringDaemon.start(t, (line, body) => (bodies.push(body), answers(line)));
  const dataDir = temporaryDirectory(t);
  const api_addr = daemon.api.replace('http://', '');
  const info = { pid: process.pid, api_addr, started_at: '2026-01-01T00:00:00.000Z', version: '0', proof_key: '' };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
  const svc = (line: string, env: Record<string, string> = {}) => runSvc(line.split(' '), { dataDir, env });

  const nobody = await svc('whoami');
  assert.deepEqual([nobody.code, /with "svc use <agent>"/.test(nobody.stderr)], [2, true]);
  assert.equal((await svc('use bob --quiet')).stdout, `${two}\n`);
  assert.match((await svc('whoami')).stdout, new RegExp(`^aid: +${two} \\(bob\\)\n[^]*because: +set by "svc use"`));
  await svc('group list');
  assert.deepEqual(bodies.at(-1), { tool: 'group_list', args: { aid: two } });
  // Tools have no pagination.
  for (const [line, path] of [
    ['group list', `/agents/${two}/groups`],
    ['chat contacts', `/agents/${two}/chat/contacts`],
    [`agents acl show ${two}`, `/agents/${two}/acl`],
    ['tunnel status', '/tunnel'],
    ['contacts', '/node/contacts'],
  ] as const) {
    await svc(`${line} --limit 2 --cursor x`);
    const asked = daemon.asked.findLast((one) => one.includes('limit=2&cursor=x'));
    assert.equal(asked, `GET ${path}?limit=2&cursor=x`, line);
  }
  await svc(`get ${one} /x`);
  assert.equal((bodies.at(-1) as { local_aid: unknown }).local_aid, two);
  await svc(`get ${one} /x --local-aid ${one}`);
  assert.equal((bodies.at(-1) as { local_aid: unknown }).local_aid, one);

  const reported: { why: unknown; aid: unknown } = JSON.parse((await svc('whoami --json', { SVC_AID: one })).stdout);
  assert.deepEqual([reported.aid, reported.why], [one, 'env'], 'the variable wins');
  const elsewhere = await svc('whoami', { SVC_API: daemon.api });
  assert.equal(elsewhere.code, 2, 'another daemon has other agents');
  assert.equal((await svc(`use ${newIdentity().aid}`)).code, 5);
  assert.equal((await svc('use --quiet')).stdout, `${two}\n`, 'a wrong choice leaves the old one');
  assert.equal((await svc('use --off')).code, 0);
  assert.equal((await svc('whoami')).code, 2);
});

test('"svc use" stores the agent by address for a daemon whose directory is not the user\'s', async (t) => {
  const daemon = await AnsweringDaemon.start(t, answers);
  const dataDir = join(temporaryDirectory(t), 'svcd');
  const svc = (line: string, env: Record<string, string> = { SVC_API: daemon.api }) =>
    runSvc(line.split(' '), { dataDir, env });
  assert.equal((await svc(`use ${one} --quiet`)).stdout, `${one}\n`);
  assert.deepEqual(JSON.parse((await svc('whoami --json')).stdout).why, 'use');
  // The same address in another spelling, and another daemon.
  assert.equal((await svc(`whoami --quiet --api ${daemon.api}/`, {})).stdout, `${one}\n`);
  const other = await AnsweringDaemon.start(t, answers);
  assert.equal((await svc('whoami', { SVC_API: other.api })).code, 2);
  assert.equal((await svc(`use ${two}`, { SVC_API: other.api })).code, 0);
  assert.equal((await svc('use --off')).code, 0);
  assert.equal((await svc('whoami')).code, 2);
  assert.equal((await svc('whoami --quiet', { SVC_API: other.api })).stdout, `${two}\n`);
  // A damaged file selects no agent.
  writeFileSync(join(dataDir, 'svc-use.json'), '{');
  assert.equal((await svc('whoami', { SVC_API: other.api })).code, 2);
});

test('"svc use" stores the agent in the data directory that SVCD_DATA_DIR names', async (t) => {
  const daemon = await AnsweringDaemon.start(t, answers);
  const directory = temporaryDirectory(t);
  const info = {
    pid: process.pid,
    api_addr: daemon.api.replace('http://', ''),
    started_at: '',
    version: '0',
    proof_key: '',
  };
  writeFileSync(join(directory, 'daemon.json'), JSON.stringify(info));
  const env = { SVCD_DATA_DIR: directory };
  assert.equal((await runSvc(['use', two], { env })).code, 0);
  assert.equal(readFileSync(join(directory, 'svc-use'), 'utf8'), `${two}\n`);
  assert.equal((await runSvc(['whoami', '--quiet'], { env })).stdout, `${two}\n`);
});

test('one option names the acting agent of every command, in place of an option or argument', async (t) => {
  const asked: [string, unknown][] = [];
  const daemon = await AnsweringDaemon.start(t, (line, body) => (asked.push([line, body]), answers(line)));
  const svc = (line: string) => runSvc(line.split(' '), { env: { SVC_API: daemon.api } });
  const last = async (line: string): Promise<unknown> => {
    asked.length = 0;
    const { code, stderr } = await svc(line);
    assert.ok(code === 0 || /cannot be shown/.test(stderr), `${line}: ${stderr}`);
    return JSON.stringify(asked.filter(([request]) => !request.startsWith('GET /node/address-book')).at(-1));
  };
  for (const [now, before] of [
    ['group list --as bob', `group list --aid ${two}`],
    ['--as bob group list', `group list --aid ${two}`],
    [`get ${one} /x --as bob`, `get ${one} /x --local-aid ${two}`],
    [`tunnel open ${one} --as bob`, `tunnel open ${one} --local-aid ${two}`],
    [`note send ${one} --text hi --as bob`, `note send ${two} ${one} --text hi`],
    [`note send ${one} aGk= --as bob --msg-type 3`, `note send ${two} ${one} aGk= --msg-type 3`],
    ['note poll -y --as bob', `note poll ${two} -y`],
    ['agents acl default deny --as bob', `agents acl default ${two} deny`],
    [`agents acl allow --aid ${one} --as bob`, `agents acl allow ${two} --aid ${one}`],
    [`agents acl allow ${one} --as bob`, `agents acl allow ${two} --aid ${one}`],
    [`agents acl allow ${one} --as bob --expires 2099-01-01`, `agents acl allow ${two} ${one} --expires 2099-01-01`],
    ['agents acl allow --generate --as bob', `agents acl allow ${two} --generate`],
    [`agents acl deny ${one} --as bob`, `agents acl deny ${two} ${one}`],
    [`get /x ${one} --as bob`, `get ${one} /x --as bob`],
    [`agents acl rm 0123456789abcdef deny -y --as bob`, `agents acl rm ${two} deny 0123456789abcdef -y`],
    [`agents acl del ${two} deny 0123456789abcdef -y`, `agents acl rm ${two} deny 0123456789abcdef -y`],
    ['tunnel close 0123456789abcdef', 'tunnel rm 0123456789abcdef'],
    ['tunnel ls', 'tunnel status'],
    ['contacts list', 'contacts'],
    ['links ls', 'links'],
    ['agents topic add a.b c.d --as bob', `agents topic add ${two} a.b c.d`],
    ['agents profile set --name x --as bob', `agents profile set ${two} --name x`],
    ['agents heartbeat --as bob', `agents heartbeat ${two}`],
  ] as const)
    assert.equal(await last(now), await last(before), now);
  assert.match(
    (await svc(`get /x ${one}`)).stderr,
    /^svc: The arguments are in another order. Read as: svc get aid1\w+ \/x\n/,
  );
  const both = await svc(`group list --as ${one} --aid ${two}`);
  assert.deepEqual([both.code, /Two agents are named/.test(both.stderr)], [2, true]);
  const none = await svc('version --as bob');
  assert.deepEqual([none.code, /No agent acts in this command/.test(none.stderr)], [2, true]);
});

test('with several agents a terminal asks, and other output lists them', async (t) => {
  const bodies: unknown[] = [];
  const daemon = await AnsweringDaemon.start(t, (line, body) => {
    if (line.startsWith('POST /fetch/') && !JSON.stringify(body).includes('local_aid'))
      return [400, { error: 'local_aid_required', message: 'Several agents.' }];
    bodies.push(body);
    return answers(line);
  });
  const env = { SVC_API: daemon.api };
  for (const [line, sent] of [
    ['group list', { tool: 'group_list', args: { aid: two } }],
    [`get ${newIdentity().aid} /x`, undefined],
  ] as const) {
    const asked = await runSvc(line.split(' '), { env, terminal: true, input: '2\n' });
    assert.equal(asked.code, 0, asked.stderr);
    assert.match(
      asked.stderr,
      /1 {2}aid1\w+…\n +2 {2}aid1\w+… {2}bob\n[^]*svc use <agent>[^]*Which one acts\? \[1-2\]/,
    );
    if (sent !== undefined) assert.deepEqual(bodies.at(-1), sent);
    else assert.equal((bodies.at(-1) as { local_aid: string }).local_aid, two);
    const wrong = await runSvc(line.split(' '), { env, terminal: true, input: '3\n' });
    assert.deepEqual([wrong.code, /"3" is not a number of this list/.test(wrong.stderr)], [2, true]);
    for (const options of [{}, { terminal: true, quiet: true }]) {
      const words = 'quiet' in options ? [...line.split(' '), '--quiet'] : line.split(' ');
      const listed = await runSvc(words, { env, ...options, input: '2\n' });
      assert.equal(listed.code, 2);
      assert.match(listed.stderr, /several agents: aid1\w+…, bob \(aid1\w+…\)\. Name one with --as.*"svc use <agent>"/);
    }
    const json = JSON.parse((await runSvc([...line.split(' '), '--json'], { env })).stderr);
    assert.deepEqual(
      [json.error, json.details.agents],
      [
        'local_aid_required',
        [
          { aid: one, label: null },
          { aid: two, label: 'bob' },
        ],
      ],
    );
  }
});

test('--via asks as the agent in use, unless --as or --via-as names another', async (t) => {
  const senders: unknown[] = [];
  const daemon = await AnsweringDaemon.start(t, (line, _body, headers) => {
    if (line.includes(' /via/')) senders.push(headers['svc-local-aid']);
    return answers(line.replace(/ \/via\/\w+/, ' '));
  });
  const svc = (line: string, env: Record<string, string> = {}) =>
    runSvc(`--via ${newIdentity().aid} ${line}`.split(' '), { env: { SVC_API: daemon.api, ...env } });
  await svc('version --json');
  await svc('version --json', { SVC_AID: 'bob' });
  await svc('version --json --as bob', { SVC_AID: one });
  await svc('version --json --via-as bob', { SVC_AID: one });
  assert.deepEqual(senders.splice(0), [undefined, two, two, two]);
  // Here --as names the agent of the other node.
  await svc('group list --as bob', { SVC_AID: one });
  assert.deepEqual([...new Set(senders)], [one]);
});
