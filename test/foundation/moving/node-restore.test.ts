import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { on, once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import * as fc from 'fast-check';
import { systemClock } from '../../../src/foundation/clock.ts';
import { DataDir } from '../../../src/foundation/data-dir/data-dir.ts';
import { finishRestore, READY, STAGING } from '../../../src/foundation/data-dir/finish-restore.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { KeyStore } from '../../../src/foundation/keys/key-store.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { readArchive, writeArchive } from '../../../src/foundation/moving/node-archive.ts';
import { takeSnapshot } from '../../../src/foundation/moving/node-backup.ts';
import { restoreNode } from '../../../src/foundation/moving/node-restore.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const NOW = Date.UTC(2026, 0, 2);

function failsWith(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === code;
}

/** A data directory with `count` agents. */
async function nodeIn(dataDir: string, count: number, config = 'log_level = "warn"\n'): Promise<void> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const keys = await KeyStore.open({ directory: join(dataDir, 'keys') }, { log: silentLog });
  keys.put('node', KeyPair.generate());
  const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
  const agents = new AgentStore(store);
  for (let i = 0; i < count; i++) {
    const { delegation, operational } = newIdentity();
    keys.put(`agent-${count}-${i}`, operational);
    agents.put({ keyName: `agent-${count}-${i}`, delegation, serviceTcp: '', registeredAt: NOW });
  }
  store.close();
  writeFileSync(join(dataDir, 'config.toml'), config, { mode: 0o600 });
}

function countAgents(dataDir: string): number {
  const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
  try {
    const names = [...new AgentStore(store).keyNames()];
    for (const name of names) assert.ok(existsSync(join(dataDir, 'keys', `${name}.key`)), name);
    return names.length;
  } finally {
    store.close();
  }
}

async function archiveOf(dataDir: string): Promise<Buffer> {
  const snapshot = takeSnapshot({ dataDir, pid: process.pid });
  const pieces: Uint8Array[] = [];
  const facts = { svcdVersion: '1', createdAt: '2026', agents: snapshot.agents };
  for await (const piece of writeArchive(snapshot.files, facts)) pieces.push(piece);
  snapshot.dispose();
  return Buffer.concat(pieces);
}

async function twoNodes(t: TestContext) {
  const directory = temporaryDirectory(t);
  const [old, home] = [join(directory, 'old'), join(directory, 'home')];
  await nodeIn(old, 3);
  await nodeIn(home, 2);
  return { directory, old, home, archive: await archiveOf(old) };
}

test('a node comes back with its database, its keys and its configuration, for its owner only', async (t) => {
  const { directory, old } = await twoNodes(t);
  writeFileSync(join(old, 'keys', 'my notes.key'), 'not a key');
  const place = join(directory, 'new', 'place');
  const { manifest, replaced } = await restoreNode([await archiveOf(old)], { dataDir: place, force: false, now: NOW });
  assert.deepEqual([manifest.agents, replaced], [3, null]);
  assert.equal(countAgents(place), 3);
  for (const name of ['keys/node.key', 'config.toml'])
    assert.deepEqual(readFileSync(join(place, name)), readFileSync(join(old, name)));
  for (const name of ['svcd.db', 'config.toml', 'keys/node.key'])
    assert.equal(statSync(join(place, name)).mode & 0o777, 0o600);
  assert.equal(statSync(join(place, 'keys')).mode & 0o777, 0o700);
  assert.ok(!existsSync(join(place, 'keys', 'my notes.key')));
  assert.deepEqual(
    readdirSync(old).filter((name) => name.startsWith('backup-')),
    [],
  );
});

test('the next backup and the next start remove the files of a killed backup', async (t) => {
  const { old } = await twoNodes(t);
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()']);
  const { pid = 0 } = child;
  const copy = join(old, `backup-${pid}.tmp`);
  mkdirSync(copy);
  await archiveOf(old);
  assert.ok(existsSync(copy), 'that of a process that runs stays');
  child.kill('SIGKILL');
  await once(child, 'exit');
  DataDir.open({ path: old, version: '1' }, { clock: systemClock }).close();
  assert.ok(!existsSync(copy));
  mkdirSync(copy);
  await archiveOf(old);
  assert.ok(!existsSync(copy));
});

test('replaces an existing node on request only, and keeps it', async (t) => {
  const { home, archive } = await twoNodes(t);
  await assert.rejects(restoreNode([archive], { dataDir: home, force: false, now: NOW }), failsWith('wrong_state'));
  assert.equal(countAgents(home), 2);
  const { replaced } = await restoreNode([archive], { dataDir: home, force: true, now: NOW });
  assert.equal(countAgents(home), 3);
  assert.ok(replaced !== null);
  assert.equal(countAgents(replaced), 2);
});

test('does not touch the directory of a running daemon, which keeps its lock', async (t) => {
  const { home, archive } = await twoNodes(t);
  const running = DataDir.open({ path: home, version: '1' }, { clock: systemClock });
  await assert.rejects(restoreNode([archive], { dataDir: home, force: true, now: NOW }), failsWith('already_running'));
  assert.equal((await archiveOf(home)).length > 0, true, 'a backup works meanwhile');
  assert.throws(() => DataDir.open({ path: home, version: '1' }, { clock: systemClock }), failsWith('already_running'));
  running.close();
  assert.equal(countAgents(home), 2);
});

test('keys from another directory are restored to the data directory', async (t) => {
  const { directory, old } = await twoNodes(t);
  const elsewhere = join(directory, 'elsewhere');
  renameSync(join(old, 'keys'), elsewhere);
  assert.throws(() => takeSnapshot({ dataDir: old, pid: process.pid }), failsWith('key_damaged'));
  writeFileSync(join(old, 'config.toml'), `# mine\nkey_dir = "${elsewhere}"\nlog_level = "warn"\n`);
  const place = join(directory, 'place');
  await restoreNode([await archiveOf(old)], { dataDir: place, force: false, now: NOW });
  assert.equal(countAgents(place), 3);
  assert.equal(readFileSync(join(place, 'config.toml'), 'utf8'), '# mine\nkey_dir = ""\nlog_level = "warn"\n');
});

test('an archive that is damaged, cut off or hostile changes nothing', async (t) => {
  const { directory, home, archive } = await twoNodes(t);
  const end = archive.indexOf('\n') + 1;
  const manifest = JSON.parse(archive.subarray(0, end).toString()) as { files: { name: string; size: number }[] };
  const withManifest = (change: (m: typeof manifest) => object): Buffer =>
    Buffer.concat([Buffer.from(`${JSON.stringify(change(manifest))}\n`), archive.subarray(end)]);
  const renamed = (name: string): Buffer =>
    withManifest((m) => ({ ...m, files: m.files.map((file, i) => (i === 0 ? { ...file, name } : file)) }));
  const variants: Record<string, Buffer> = {
    'not one': Buffer.from('hello'),
    empty: Buffer.alloc(0),
    'cut off': archive.subarray(0, -1),
    longer: Buffer.concat([archive, Buffer.from('x')]),
    'a changed byte': Buffer.concat([archive.subarray(0, -9), Buffer.from('x'), archive.subarray(-8)]),
    'a key missing': withManifest((m) => ({ ...m, files: m.files.slice(1) })),
    'another version': withManifest((m) => ({ ...m, svcd_backup: 2 })),
    'the same twice': withManifest((m) => ({ ...m, files: [...m.files, m.files[0]] })),
    'no database': withManifest((m) => ({ ...m, files: m.files.filter(({ name }) => name !== 'svcd.db') })),
    'a size that is none': withManifest((m) => ({ ...m, files: m.files.map((file) => ({ ...file, size: -1 })) })),
  };
  const hostile = [
    '../x.key',
    'keys/../../x.key',
    '/etc/x.key',
    'keys/a/b.key',
    'lock.db',
    'replaces',
    'keys/x.key\0',
    'KEYS/node.key',
  ];
  for (const name of hostile) variants[name] = renamed(name);
  const before = readdirSync(home).sort();
  for (const [what, bytes] of Object.entries(variants)) {
    await assert.rejects(restoreNode([bytes], { dataDir: home, force: true, now: NOW }), failsWith('bad_file'), what);
    assert.deepEqual(readdirSync(home).sort(), [...new Set([...before, 'lock.db'])].sort(), what);
  }
  assert.equal(countAgents(home), 2);
  assert.deepEqual(readdirSync(directory).sort(), ['home', 'old']);
  const fresh = join(directory, 'fresh');
  await assert.rejects(
    restoreNode([archive.subarray(0, -1)], { dataDir: fresh, force: false, now: NOW }),
    failsWith('bad_file'),
  );
  assert.ok(!existsSync(fresh));
});

test('a database that would run what a stranger wrote into it is refused before it is used', async (t) => {
  const { directory, old, home } = await twoNodes(t);
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS key_name FROM n';
  const changes: Record<string, string> = {
    'a view in place of a table': `ALTER TABLE agents RENAME TO real_agents; CREATE VIEW agents AS ${endless}`,
    'a trigger of its own': 'CREATE TRIGGER hostile AFTER UPDATE ON groups BEGIN DELETE FROM agents; END',
    'a trigger that was changed':
      'DROP TRIGGER agents_notes; CREATE TRIGGER agents_notes AFTER DELETE ON agents BEGIN SELECT 1; END',
    'a table more': 'CREATE TABLE more (x CHECK (length(zeroblob(900000000)) > 0))',
    'a table less': 'DROP TABLE objects',
    'an index on an expression': 'CREATE INDEX costly ON agents (hex(zeroblob(1000000)))',
    'an older version than its tables': 'PRAGMA user_version = 0',
  };
  for (const [what, sql] of Object.entries(changes)) {
    const copy = join(directory, 'crafted');
    cpSync(old, copy, { recursive: true });
    const database = new DatabaseSync(join(copy, 'svcd.db'));
    database.exec(sql);
    database.close();
    const names = ['keys/node.key', ...readdirSync(join(copy, 'keys')).map((name) => `keys/${name}`), 'svcd.db'];
    const files = [...new Set(names)].map((name) => ({ name, content: { path: join(copy, name) } }));
    const pieces: Uint8Array[] = [];
    const facts = { svcdVersion: '1', createdAt: '2026', agents: 3 };
    for await (const piece of writeArchive(files, facts)) pieces.push(piece);
    await assert.rejects(
      restoreNode(pieces, { dataDir: home, force: true, now: NOW }),
      { code: 'bad_file', message: /not written by svcd/ },
      what,
    );
    rmSync(copy, { recursive: true });
  }
  assert.equal(countAgents(home), 2);
});

test('whatever bytes come, an archive is read or refused', async () => {
  const open = () => ({ write: () => {}, close: () => {} });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.json().map((json) => Buffer.from(`{"svcd_backup":1,"files":${json}}\n`)),
      ),
      async (bytes) => {
        await assert.rejects(readArchive([bytes], open), failsWith('bad_file'));
      },
    ),
    { seed: 3, numRuns: 500 },
  );
});

test('an interrupted restore is completed later, or has no effect', async (t) => {
  const { directory, home, archive } = await twoNodes(t);
  const staged = join(directory, 'staged');
  await restoreNode([archive], { dataDir: staged, force: false, now: NOW });
  rmSync(join(staged, 'lock.db'));
  writeFileSync(join(staged, 'replaces'), 'aside');
  // Staged and not ready: it counts for nothing.
  mkdirSync(join(home, STAGING));
  writeFileSync(join(home, STAGING, 'svcd.db'), 'half');
  finishRestore(home);
  assert.equal(countAgents(home), 2);
  assert.ok(!existsSync(join(home, STAGING)));
  // Staged, and some old files are already moved.
  renameSync(staged, join(home, READY));
  mkdirSync(join(home, 'aside'));
  renameSync(join(home, 'svcd.db'), join(home, 'aside', 'svcd.db'));
  DataDir.open({ path: home, version: '1' }, { clock: systemClock }).close();
  assert.equal(countAgents(home), 3);
  assert.equal(countAgents(join(home, 'aside')), 2);
  // Some of the new is in place already.
  mkdirSync(join(home, 'restore.placing'));
  renameSync(join(home, 'keys'), join(home, 'restore.placing', 'keys'));
  finishRestore(home);
  assert.equal(countAgents(home), 3);
  assert.ok(!existsSync(join(home, 'restore.placing')));
});

test('a process that is killed while it restores leaves the old node or the new one', {
  timeout: 120_000,
}, async (t) => {
  const { directory, home, archive } = await twoNodes(t);
  const file = join(directory, 'node.svcd');
  writeFileSync(file, archive);
  for (let round = 0; round < 8; round++) {
    const child = fork(new URL('../../support/move-child.ts', import.meta.url), [file, home]);
    // The messages arrive during the restore, so the kill happens after the reported step. Several may arrive together.
    const messages = on(child, 'message');
    for (let message = 0; message <= round; message++) await messages.next();
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    DataDir.open({ path: home, version: '1' }, { clock: systemClock }).close();
    const count = countAgents(home);
    assert.ok(count === 2 || count === 3, `${count}`);
    const leftovers = readdirSync(home).filter((name) => name.startsWith('restore.'));
    assert.deepEqual(leftovers, []);
  }
});

test('events after a restored backup get numbers that were never given', async (t) => {
  const { directory, old } = await twoNodes(t);
  const emit = (dataDir: string): number => {
    const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
    store.run("INSERT INTO events (aid, type, at, data) VALUES ('a', 'b', 0, '{}')");
    const seq = Number(store.one('SELECT max(seq) AS seq FROM events')?.['seq']);
    store.close();
    return seq;
  };
  emit(old);
  const archive = await archiveOf(old);
  const later = Math.max(emit(old), emit(old));
  const place = join(directory, 'place');
  await restoreNode([archive], { dataDir: place, force: false, now: NOW });
  assert.ok(emit(place) > later);
});
