/** Imports that are killed, and backups of a running node. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { AgentDocument } from '../../src/foundation/moving/agent-document.ts';
import { svc, svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { newIdentity } from '../support/identities.ts';
import { furnish, MoverNode, timeless } from '../support/mover-world.ts';
import { base64, chatTexts, noteTexts, published, sendNote } from '../support/moving.ts';
import { ready } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const PASSWORD = 'correct horse';
/** Entries of a conversation: enough that an import takes a while. */
const MANY = 4000;

/** An agent with a long conversation. */
async function longDocument(): Promise<AgentDocument> {
  const node = new MoverNode();
  const agent = newIdentity();
  await node.registry.register(agent.credentials);
  await furnish(node, agent, [newIdentity(), newIdentity(), newIdentity()]);
  const document = node.mover.export(agent.aid);
  node.close();
  const chat = document.chat.map((pair) => {
    if (pair.state !== 'friends') return pair;
    const more = Array.from({ length: MANY }, (_, i) => ({
      seq: pair.last_seq + 1 + i,
      id: (i + 1).toString(16).padStart(32, '0'),
      dir: 'in' as const,
      status: 'received' as const,
      at: i,
      text: `entry ${i}`,
    }));
    return { ...pair, last_seq: pair.last_seq + MANY, entries: [...pair.entries, ...more] };
  });
  // No tunnels: another test may use their ports.
  return { ...document, chat, tunnels: [] };
}

test('a daemon killed during an import has the whole agent or nothing', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = temporaryDirectory(t);
  const document = await longDocument();
  const expected = { ...document.chat.find(({ state }) => state === 'friends') };
  const outcomes = new Set<number>();
  for (let round = 0; round < 4; round++) {
    const daemon = await TestDaemon.start({ dataDir });
    const importing = daemon.request('POST', '/agents/import', document).then(
      ({ status }) => status,
      () => 0,
    );
    // A varying number of requests delays the kill, so that it hits different steps.
    for (let i = 0; i < round; i++) await daemon.request('GET', '/health').catch(() => null);
    if (round === 3) assert.equal(await importing, 200);
    await daemon.kill();
    const answered = await importing;
    await using again = await TestDaemon.start({ dataDir });
    const { status, body } = await again.request('GET', `/agents/${document.aid}/bundle`);
    outcomes.add(status);
    assert.ok(status === 200 || status === 404, `${status}`);
    if (answered === 200) assert.equal(status, 200, 'the acknowledged import is stored');
    if (status === 200) {
      const there = body as AgentDocument;
      assert.equal(there.chat.find(({ state }) => state === 'friends')?.last_seq, expected.last_seq);
      assert.deepEqual(
        there.groups.joined.map(({ entries_base64: e }) => e.length),
        [4],
      );
      assert.deepEqual(timeless(there).access, timeless(document).access);
      await again.call('DELETE', `/agents/${document.aid}`);
    }
    const imported = await again.call<{ aid: string }>('POST', '/agents/import', document);
    assert.equal(imported.aid, document.aid);
    await again.call('DELETE', `/agents/${document.aid}`);
    await again.kill('SIGTERM');
  }
  assert.ok(outcomes.has(200));
});

test('a sealed export opens only with its password; files that are no export, and damaged ones, get different errors', async (t) => {
  await using old = await TestDaemon.start();
  const directory = temporaryDirectory(t);
  const [file, password] = [join(directory, 'a.agent'), join(directory, 'password')];
  writeFileSync(password, `${PASSWORD}\n`, { mode: 0o600 });
  const aid = await old.newAgent();
  const short = await svc(old, ['agents', 'export', aid, '-o', file, '--password'], 'short\n');
  assert.deepEqual([short.code, existsSync(file)], [2, false]);
  const exported = await svcJson<{ sealed: boolean; size: number }>(
    old,
    'agents',
    'export',
    aid,
    '-o',
    file,
    '--password-file',
    password,
  );
  assert.deepEqual([exported.sealed, exported.size], [true, statSync(file).size]);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await svc(old, ['agents', 'export', aid, '-o', file, '--password-file', password])).code, 1);
  const there = await svc(old, ['--json', 'agents', 'import', file], `${PASSWORD}\n`);
  assert.deepEqual([there.code, (JSON.parse(there.stderr) as { error: string }).error], [1, 'agent_exists']);
  await svcOk(old, 'agents', 'del', aid, '-y');
  const wrong = await svc(old, ['--json', 'agents', 'import', file], 'another password\n');
  assert.deepEqual([wrong.code, (JSON.parse(wrong.stderr) as { error: string }).error], [4, 'wrong_password']);
  writeFileSync(join(directory, 'noise'), '{"svcd_agent":');
  const noise = await svc(old, ['--json', 'agents', 'import', join(directory, 'noise')]);
  assert.deepEqual([noise.code, (JSON.parse(noise.stderr) as { error: string }).error], [2, 'bad_file']);
  assert.equal((await svc(old, ['agents', 'import', join(directory, 'nowhere')])).code, 5);
  const service = ['--service-tcp', '127.0.0.1:9'];
  const { code, stdout } = await svc(old, ['--quiet', 'agents', 'import', file, ...service], PASSWORD);
  assert.deepEqual([code, stdout.trim()], [0, aid]);
  assert.equal((await svcJson<{ service_tcp: string }>(old, 'agents', 'get', aid)).service_tcp, '127.0.0.1:9');
});

test('a running node is backed up while it works and restored unchanged; its friends notice nothing', {
  timeout: 300_000,
}, async (t) => {
  await using away = await TestDaemon.start();
  const directory = temporaryDirectory(t);
  const [dataDir, file] = [join(directory, 'node'), join(directory, 'node.svcd')];
  const start = (): Promise<TestDaemon> => TestDaemon.start({ dataDir, bootstrap: [away.dhtAddress] });
  const running = await start();
  await Promise.all([ready(running), ready(away)]);
  const [aid, friend] = [await published(running), await published(away)];
  await sendNote(away, friend, aid, 'before');
  // A note that the network stores is sent too.
  await eventually('the note has arrived', async () => (await noteTexts(running, aid)).includes('before'));
  // Agents are created during the backup: each is in it with its key, or not at all.
  const writing = Array.from({ length: 10 }, () => running.newAgent());
  const backup = await svc(running, ['--json', 'backup', file], PASSWORD);
  assert.equal(backup.code, 0, backup.stderr);
  const { agents } = JSON.parse(backup.stdout) as { agents: number };
  assert.ok(agents >= 1 && agents <= 11);
  await Promise.all(writing);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.startsWith('backup-')),
    [],
  );
  assert.equal((await svc(running, ['backup', file], PASSWORD)).code, 1, 'a file is never overwritten');
  const refused = await svc(running, ['--json', 'restore', file, '--data-dir', dataDir, '--force'], PASSWORD);
  assert.equal((JSON.parse(refused.stderr) as { error: string }).error, 'already_running');
  const { node_aid: node } = await running.call<{ node_aid: string }>('GET', '/status');
  await sendNote(away, friend, aid, 'after');
  await running.kill();

  rmSync(dataDir, { recursive: true });
  const restored = await svc(null, ['--json', 'restore', file, '--data-dir', dataDir], PASSWORD);
  assert.equal(restored.code, 0, restored.stderr);
  const back = await start();
  assert.equal((await back.call<{ node_aid: string }>('GET', '/status')).node_aid, node);
  assert.equal((await back.call<{ agents: unknown[] }>('GET', '/agents')).agents.length, agents);
  await ready(back);
  await back.call('POST', `/agents/${aid}/publish`);
  assert.ok((await noteTexts(back, aid)).includes('before'));
  await back.call('POST', `/agents/${aid}/mailbox/send`, {
    recipient: friend,
    msg_type: 3,
    body_base64: base64('again'),
  });
  assert.deepEqual(
    await eventually('the note', async () => {
      const texts = await noteTexts(away, friend);
      return texts.length > 0 && texts;
    }),
    ['again'],
  );
  assert.deepEqual(await chatTexts(back, aid, friend), []);
  await back.kill('SIGTERM');
});
