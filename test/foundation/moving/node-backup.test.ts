import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Snapshot, takeSnapshot } from '../../../src/foundation/moving/node-backup.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { failsWith } from '../../support/vectors.ts';
import { testDelegation } from '../store/store-with-agents.ts';

const { pid } = process;

/** A data directory with two agents and the keys that are named. */
function nodeWith(t: TestContext, ...keys: readonly string[]): string {
  const dataDir = temporaryDirectory(t);
  const store = Store.open(join(dataDir, 'svcd.db'), MIGRATIONS);
  for (const n of [1, 2])
    new AgentStore(store).put({ keyName: `a${n}`, delegation: testDelegation(n), serviceTcp: '', registeredAt: 0 });
  store.close();
  mkdirSync(join(dataDir, 'keys'));
  for (const name of keys) writeFileSync(join(dataDir, 'keys', name), name);
  return dataDir;
}

const KEYS = ['a1.key', 'a2.key', 'node.key'];

/** The files of a snapshot by name, with their text if in memory. */
function filesOf({ files }: Snapshot): [string, string | undefined][] {
  return files.map(({ name, content }) => [
    name,
    content instanceof Uint8Array ? Buffer.from(content).toString() : undefined,
  ]);
}

test('a snapshot has the keys, the configuration and a copy of the database, until it is disposed of', (t) => {
  const dataDir = nodeWith(t, ...KEYS, 'seal.json', 'my notes.key');
  writeFileSync(join(dataDir, 'config.toml'), '# mine\n');
  const snapshot = takeSnapshot({ dataDir, pid });
  assert.equal(snapshot.agents, 2);
  assert.deepEqual(
    new Map(filesOf(snapshot)),
    new Map([
      ['keys/a1.key', 'a1.key'],
      ['keys/a2.key', 'a2.key'],
      ['keys/node.key', 'node.key'],
      ['keys/seal.json', 'seal.json'],
      ['config.toml', '# mine\n'],
      ['svcd.db', undefined],
    ]),
  );
  const directory = join(dataDir, `backup-${pid}.tmp`);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  const database = snapshot.files.at(-1)?.content;
  assert.ok(database !== undefined && 'path' in database && database.path === join(directory, '1.db'));
  const copy = Store.open(database.path, MIGRATIONS);
  assert.equal(new AgentStore(copy).count(), 2);
  copy.close();
  snapshot.dispose();
  assert.ok(!existsSync(directory));
  snapshot.dispose();
});

test('without a configuration there is none in the snapshot', (t) => {
  const snapshot = takeSnapshot({ dataDir: nodeWith(t, ...KEYS), pid });
  t.after(() => snapshot.dispose());
  assert.deepEqual(
    filesOf(snapshot)
      .map(([name]) => name)
      .sort(),
    [...KEYS.map((name) => `keys/${name}`), 'svcd.db'],
  );
});

test('finds keys in the given directory, otherwise in the configured one', (t) => {
  const [dataDir, configured, given] = [nodeWith(t, ...KEYS), temporaryDirectory(t), temporaryDirectory(t)];
  for (const name of KEYS) {
    writeFileSync(join(configured, name), 'configured');
    writeFileSync(join(given, name), 'given');
  }
  const keyFrom = (keyDir?: string): string | undefined => {
    const snapshot = takeSnapshot({ dataDir, pid, keyDir });
    snapshot.dispose();
    return new Map(filesOf(snapshot)).get('keys/node.key');
  };
  writeFileSync(join(dataDir, 'config.toml'), 'key_dir = ""\n');
  assert.equal(keyFrom(), 'node.key');
  writeFileSync(join(dataDir, 'config.toml'), `key_dir = "${configured}"\n`);
  assert.equal(keyFrom(), 'configured');
  assert.equal(keyFrom(given), 'given');
});

test('fails without a node to back up', (t) => {
  const dataDir = temporaryDirectory(t);
  assert.throws(() => takeSnapshot({ dataDir, pid }), failsWith('not_found'));
  assert.deepEqual(readdirSync(dataDir), []);
});

test('a backup without all keys is not taken, and leaves nothing', (t) => {
  for (const missing of KEYS) {
    const dataDir = nodeWith(t, ...KEYS.filter((name) => name !== missing));
    const keyDir = join(dataDir, 'keys');
    assert.throws(() => takeSnapshot({ dataDir, pid }), {
      code: 'key_damaged',
      message: `1 keys of agents are missing in ${keyDir}. If the keys are in another folder, give it with --key-dir.`,
    });
    assert.ok(!existsSync(join(dataDir, `backup-${pid}.tmp`)));
    rmSync(keyDir, { recursive: true });
    assert.throws(() => takeSnapshot({ dataDir, pid }), { code: 'key_damaged', message: /^3 keys/ });
  }
});

test('a disk that refuses, or a key that cannot be read, is an error of the directory', (t) => {
  const dataDir = nodeWith(t, ...KEYS);
  mkdirSync(join(dataDir, 'keys', 'folder.key'));
  assert.throws(() => takeSnapshot({ dataDir, pid }), failsWith('not_writable'));
  rmSync(join(dataDir, 'keys', 'folder.key'), { recursive: true });
  // As a key that is deleted between two looks: it is named, and not there.
  symlinkSync('nowhere', join(dataDir, 'keys', 'gone.key'));
  const snapshot = takeSnapshot({ dataDir, pid });
  assert.equal(new Map(filesOf(snapshot)).has('keys/gone.key'), false);
  assert.throws(() => takeSnapshot({ dataDir, pid }), failsWith('not_writable'), 'one at a time in a process');
});
