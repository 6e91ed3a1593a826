import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [{ aid: one }, { aid: two }] = [newIdentity(), newIdentity()];

/** Two local agents. Commands can act as either. */
function answers(line: string): readonly [number, unknown] {
  if (line === 'GET /agents?limit=2') return [200, { agents: [{ aid: one }, { aid: two }] }];
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
  const info = { pid: process.pid, api_addr, started_at: '2026-01-01T00:00:00.000Z', version: '0' };
  writeFileSync(join(dataDir, 'daemon.json'), JSON.stringify(info));
  const svc = (line: string, env: Record<string, string> = {}) => runSvc(line.split(' '), { dataDir, env });

  const nobody = await svc('whoami');
  assert.deepEqual([nobody.code, /select one with "svc use <agent>"/.test(nobody.stderr)], [2, true]);
  assert.equal((await svc('use bob --quiet')).stdout, `${two}\n`);
  assert.match((await svc('whoami')).stdout, new RegExp(`^aid: +${two}\n[^]*because: +set by "svc use"`));
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

  const told: { why: unknown; aid: unknown } = JSON.parse((await svc('whoami --json', { SVC_AID: one })).stdout);
  assert.deepEqual([told.aid, told.why], [one, 'env'], 'the variable wins');
  const elsewhere = await svc('whoami', { SVC_API: daemon.api });
  assert.equal(elsewhere.code, 2, 'another daemon has other agents');
  assert.equal((await svc(`use ${newIdentity().aid}`)).code, 5);
  assert.equal((await svc('use --quiet')).stdout, `${two}\n`, 'a wrong choice leaves the old one');
  assert.equal((await svc('use --off')).code, 0);
  assert.equal((await svc('whoami')).code, 2);
});

test('"svc use" needs a data directory', async (t) => {
  const daemon = await AnsweringDaemon.start(t, answers);
  const { code, stderr } = await runSvc(['use', one], { env: { SVC_API: daemon.api } });
  assert.equal(code, 5);
  assert.match(stderr, /Set SVC_AID instead/);
});
