/** Checks before a restore, and the files on disk after each step. */
import assert from 'node:assert/strict';
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { READY, REPLACES_FILE } from '../../../src/foundation/data-dir/finish-restore.ts';
import { writeArchive } from '../../../src/foundation/moving/node-archive.ts';
import { resetAfterRestore, restoreNode } from '../../../src/foundation/moving/node-restore.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { EventStore } from '../../../src/foundation/store/events.ts';
import { GroupStore } from '../../../src/foundation/store/groups.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { testAid } from '../../support/agents.ts';
import { recordFileSteps } from '../../support/file-steps.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { failsWith } from '../../support/vectors.ts';
import { bytes, testDelegation } from '../store/store-with-agents.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

/** An archive of a database with agent number 1, and of these files. */
async function archiveWith(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  change: (store: Store) => void = () => {},
): Promise<Buffer> {
  const path = join(temporaryDirectory(t), 'db');
  const store = Store.open(path, MIGRATIONS);
  new AgentStore(store).put({ keyName: 'a1', delegation: testDelegation(1), serviceTcp: '', registeredAt: 0 });
  change(store);
  store.close();
  const sources = Object.entries(files).map(([name, text]) => ({ name, content: Buffer.from(text) }));
  const pieces: Uint8Array[] = [];
  const facts = { svcdVersion: '1', createdAt: '2026', agents: 1 };
  for await (const piece of writeArchive([...sources, { name: 'svcd.db', content: { path } }], facts))
    pieces.push(piece);
  return Buffer.concat(pieces);
}

const KEYS = { 'keys/a1.key': 'one', 'keys/node.key': 'node' };

function restore(archive: Uint8Array, dataDir: string, force = false) {
  return restoreNode([archive], { dataDir, force, now: NOW });
}

test('a backup without all of its keys is refused', async (t) => {
  for (const missing of Object.keys(KEYS)) {
    const files = Object.fromEntries(Object.entries(KEYS).filter(([name]) => name !== missing));
    const dataDir = temporaryDirectory(t);
    await assert.rejects(restore(await archiveWith(t, files), dataDir), {
      code: 'bad_file',
      message: /Keys are missing/,
    });
    assert.deepEqual(readdirSync(dataDir), ['lock.db']);
  }
});

test('a database that is damaged is refused, though its digest is right', async (t) => {
  const archive = await archiveWith(t, KEYS, (store) => {
    store.run('PRAGMA ignore_check_constraints = ON');
    store.run("INSERT INTO publishers (aid, claim, state) VALUES ('a', 1, 'none such')");
  });
  const dataDir = temporaryDirectory(t);
  await assert.rejects(restore(archive, dataDir), { code: 'bad_file', message: /is damaged/ });
  assert.deepEqual(readdirSync(dataDir), ['lock.db']);
});

test('any part of a node counts as a node and is kept when replaced', async (t) => {
  const archive = await archiveWith(t, KEYS);
  const dataDir = temporaryDirectory(t);
  writeFileSync(join(dataDir, 'config.toml'), '# mine\n');
  await assert.rejects(restore(archive, dataDir), failsWith('wrong_state'));
  const { replaced } = await restore(archive, dataDir, true);
  assert.match(replaced ?? '', /\/replaced-20260102T030405Z-[0-9a-f]{4}$/);
  assert.deepEqual(readdirSync(replaced ?? ''), ['config.toml']);
  assert.deepEqual(
    readdirSync(dataDir)
      .filter((name) => !name.startsWith('replaced-'))
      .sort(),
    ['keys', 'lock.db', 'svcd.db'],
  );
});

test('completes an interrupted restore before another check', async (t) => {
  const archive = await archiveWith(t, KEYS);
  const [first, dataDir] = [temporaryDirectory(t), temporaryDirectory(t)];
  await restore(archive, first);
  writeFileSync(join(first, REPLACES_FILE), 'aside');
  mkdirSync(join(dataDir, READY));
  for (const name of ['svcd.db', 'keys', REPLACES_FILE]) renameSync(join(first, name), join(dataDir, READY, name));
  await assert.rejects(restore(archive, dataDir), failsWith('wrong_state'));
  assert.deepEqual(readdirSync(dataDir).sort(), ['keys', 'lock.db', 'svcd.db']);
});

test('does not replace files on another disk', async (t) => {
  const archive = await archiveWith(t, KEYS);
  const dataDir = temporaryDirectory(t);
  mkdirSync(join(dataDir, 'keys'));
  writeFileSync(join(dataDir, 'config.toml'), '');
  const { lstatSync } = fs;
  t.mock.method(fs, 'lstatSync', (path: string) => {
    const found = lstatSync(path);
    return path.endsWith('keys') ? Object.assign(found, { dev: found.dev + 1 }) : found;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  await assert.rejects(restore(archive, dataDir, true), {
    code: 'not_writable',
    message: `${join(dataDir, 'keys')} is on another disk than ${dataDir}. Move it there first. Nothing was changed.`,
  });
  assert.deepEqual(readdirSync(dataDir).sort(), ['config.toml', 'keys', 'lock.db']);
});

test('everything is on the disk before one rename says that it counts', async (t) => {
  const archive = await archiveWith(t, { ...KEYS, 'config.toml': 'key_dir = "/elsewhere"\n' });
  const dataDir = temporaryDirectory(t);
  const recorded = recordFileSteps(t, dataDir);
  await restore(archive, dataDir);
  const { steps } = recorded;
  const counts = steps.indexOf(`rename restore.new ${READY}`);
  const synced = (...names: string[]): string[] => names.map((name) => `sync restore.new/${name}`);
  const replaced = (name: string): string[] => [
    ...synced(`${name}.tmp`),
    `rename restore.new/${name}.tmp restore.new/${name}`,
    'sync restore.new',
  ];
  assert.deepEqual(steps.slice(0, counts), [
    ...synced('keys/a1.key', 'keys/node.key', 'config.toml', 'svcd.db', 'svcd.db'),
    ...replaced('config.toml'),
    ...replaced(REPLACES_FILE),
    ...synced('keys'),
    'sync restore.new',
  ]);
  assert.equal(steps[counts + 1], 'sync .');
  assert.deepEqual(recorded.open(), []);
  assert.equal(readFileSync(join(dataDir, 'config.toml'), 'utf8'), 'key_dir = ""\n');
});

test('a failed restore removes a directory that it created, but no other', async (t) => {
  const archive = (await archiveWith(t, KEYS)).subarray(0, -1);
  const dataDir = join(temporaryDirectory(t), 'new');
  await assert.rejects(restore(archive, dataDir), failsWith('bad_file'));
  assert.ok(!existsSync(dataDir));
  mkdirSync(dataDir);
  await assert.rejects(restore(archive, dataDir), failsWith('bad_file'));
  assert.ok(existsSync(dataDir));
});

test('replicas of groups have new names, and a thousand million numbers of events are passed over', () => {
  const store = Store.open(':memory:', MIGRATIONS);
  const groups = new GroupStore(store);
  const room = {
    aid: testAid(1),
    creator: testAid(1),
    title: '',
    state: 'member',
    secret: null,
    hints: [],
    lastAt: 0,
  } as const;
  for (const n of [1, 2]) groups.add({ ...room, groupId: `0${n}`.repeat(32), epoch: bytes(n) });
  const events = new EventStore(store);
  events.append(testAid(1), 't', 0, '');
  resetAfterRestore(store);
  const epochs = groups.list(testAid(1)).map(({ epoch }) => Buffer.from(epoch).toString('hex'));
  assert.ok(epochs.every((epoch) => epoch.length === 32));
  assert.equal(new Set([...epochs, '01'.repeat(16), '02'.repeat(16)]).size, 4);
  assert.equal(events.append(testAid(1), 't', 0, ''), 1_000_000_002);
});
