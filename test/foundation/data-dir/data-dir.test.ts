import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readDaemonInfo } from '../../../src/foundation/data-dir/daemon-info.ts';
import { DataDir } from '../../../src/foundation/data-dir/data-dir.ts';
import { acquireLock } from '../../../src/foundation/data-dir/lock.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { beUser } from '../../support/other-system.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

function open(path: string): DataDir {
  return DataDir.open({ path, version: '1.2.3' }, { clock: new TestClock() });
}

/** Starts another process on the directory. Resolves with its report about the lock. */
async function fight(t: TestContext, path: string): Promise<{ child: ChildProcess; says: unknown }> {
  const child = fork(new URL('./hold.ts', import.meta.url), [path]);
  t.after(() => child.kill('SIGKILL'));
  const [says] = await once(child, 'message');
  return { child, says };
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

function runsAlready(details: Record<string, unknown>, message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, 'already_running');
    assert.deepEqual(error.details, details);
    assert.match(error.message, message);
    return true;
  };
}

test('makes a directory, and its parents, for the owner only', (t) => {
  const path = join(temporaryDirectory(t), 'a', 'svcd');
  const directory = open(path);
  t.after(() => directory.close());
  assert.equal(statSync(path).mode & 0o777, 0o700);
  const files = readdirSync(path);
  for (const name of ['lock.db', 'lock.db-journal', 'daemon.json']) assert.ok(files.includes(name), name);
  for (const name of files) assert.equal(statSync(join(path, name)).mode & 0o777, 0o600, name);
  assert.equal(directory.file('x.db'), join(path, 'x.db'));
});

test('closes a directory that others could enter', (t) => {
  const path = temporaryDirectory(t);
  for (const mode of [0o755, 0o701]) {
    chmodSync(path, mode);
    open(path).close();
    assert.equal(statSync(path).mode & 0o777, 0o700);
  }
});

test("another user's directory is refused, but not by root", (t) => {
  const path = temporaryDirectory(t);
  const { uid } = statSync(path);
  const become = beUser(t, uid + 1);
  assert.throws(() => open(path), {
    code: 'not_writable',
    message: `The data directory ${path} belongs to another user. Give another --data-dir.`,
  });
  become(0);
  open(path).close();
});

// Only root can give a file away.
const asRoot = { skip: process.getuid?.() !== 0 && 'needs root' };

test("another user's file in the directory is refused: it may be a key, a setting or a program", asRoot, (t) => {
  const path = temporaryDirectory(t);
  writeFileSync(join(path, 'config.toml'), '');
  open(path).close();
  chownSync(join(path, 'config.toml'), 65_534, 65_534);
  assert.throws(() => open(path), { code: 'not_writable', message: /config\.toml belongs to another user/ });
});

test('opening the directory removes the files of a killed backup', (t) => {
  const path = temporaryDirectory(t);
  mkdirSync(join(path, 'backup-99999999.tmp'));
  open(path).close();
  assert.deepEqual(readdirSync(path), ['lock.db']);
});

test('a directory that could not be opened is free for the next who comes', (t) => {
  const path = temporaryDirectory(t);
  mkdirSync(join(path, 'restore.ready'));
  assert.throws(() => open(path), { code: 'not_writable', message: /could not be finished/ });
  rmSync(join(path, 'restore.ready'), { recursive: true });
  open(path).close();
});

test('does not name an unknown holder of the lock', (t) => {
  const path = temporaryDirectory(t);
  const lock = acquireLock(path);
  t.after(() => lock?.release());
  assert.throws(
    () => open(path),
    runsAlready(
      { data_dir: path, pid: null, api_addr: null },
      /^Another svcd runs on the data directory [^;]*\. Stop it/,
    ),
  );
});

test('daemon.json tells where the daemon is, and goes with it', (t) => {
  const path = temporaryDirectory(t);
  assert.equal(readDaemonInfo(path), null);
  const directory = open(path);
  const proof_key = Buffer.from(directory.proofKey).toString('base64url');
  const started_at = '2026-01-01T00:00:00.000Z';
  const info = { pid: process.pid, api_addr: null, started_at, version: '1.2.3', proof_key };
  assert.deepEqual(readDaemonInfo(path), info);
  directory.announce('127.0.0.1:2121');
  assert.deepEqual(readDaemonInfo(path), { ...info, api_addr: '127.0.0.1:2121' });
  directory.close();
  assert.equal(existsSync(join(path, 'daemon.json')), false);
  const wrong = [
    { pid: '1' },
    { api_addr: 5 },
    { started_at: 5 },
    { version: 5 },
    { version: undefined },
    { proof_key: 5 },
  ];
  const texts = wrong.map((change) => JSON.stringify({ ...info, ...change }));
  for (const text of ['', '{', 'null', '[]', ...texts]) {
    writeFileSync(join(path, 'daemon.json'), text);
    assert.equal(readDaemonInfo(path), null, text);
  }
});

test('is held once, also within a process, and can be taken again after close', (t) => {
  const path = temporaryDirectory(t);
  const first = open(path);
  assert.throws(
    () => open(path),
    runsAlready(
      { data_dir: path, pid: process.pid, api_addr: null },
      /Another svcd \(process \d+\) runs on the data directory/,
    ),
  );
  first.announce('127.0.0.1:9');
  assert.throws(
    () => open(path),
    runsAlready(
      { data_dir: path, pid: process.pid, api_addr: '127.0.0.1:9' },
      /its API is at 127\.0\.0\.1:9\. Stop it/,
    ),
  );
  assert.equal(readDaemonInfo(path)?.api_addr, '127.0.0.1:9');
  first.close();
  open(path).close();
});

test('a second process is refused, and told who holds it', async (t) => {
  const path = temporaryDirectory(t);
  const { child, says } = await fight(t, path);
  assert.equal(says, 'holds');
  assert.throws(
    () => open(path),
    runsAlready({ data_dir: path, pid: child.pid, api_addr: '127.0.0.1:4711' }, /127\.0\.0\.1:4711/),
  );
  assert.equal((await fight(t, path)).says, 'already_running');
  await kill(child);
});

test('a SIGKILL of the holder releases the lock, whatever files remain', async (t) => {
  const path = temporaryDirectory(t);
  for (let round = 0; round < 3; round += 1) {
    const { child, says } = await fight(t, path);
    assert.equal(says, 'holds');
    await kill(child);
    assert.equal(readDaemonInfo(path)?.pid, child.pid);
    const directory = open(path);
    assert.equal(readDaemonInfo(path)?.pid, process.pid);
    directory.close();
  }
});

test('one of several concurrent processes gets the lock', async (t) => {
  const path = temporaryDirectory(t);
  const children = await Promise.all([1, 2, 3, 4].map(() => fight(t, path)));
  assert.equal(children.filter(({ says }) => says === 'holds').length, 1);
  assert.equal(children.filter(({ says }) => says === 'already_running').length, 3);
});

test('reports an unusable directory or lock', (t) => {
  const path = temporaryDirectory(t);
  writeFileSync(join(path, 'file'), '');
  assert.throws(() => open(join(path, 'file')), { code: 'not_writable', message: /file is not a directory/ });
  assert.throws(() => open(join(path, 'file', 'x')), { code: 'not_writable', message: /x is not a directory/ });
  assert.throws(() => open(join(path, 'x'.repeat(300))), {
    code: 'not_writable',
    message: /x cannot be used \(ENAMETOOLONG\)/,
  });
  writeFileSync(join(path, 'lock.db'), 'x'.repeat(4096));
  assert.throws(() => open(path), { code: 'not_writable', message: /lock\.db cannot be used/ });
  assert.equal(readFileSync(join(path, 'lock.db'), 'utf8').length, 4096);
});
