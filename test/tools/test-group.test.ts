import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import skippedTests from '../../tools/skipped-tests.ts';
import { ProcessAges, runGroup } from '../../tools/test-group.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const POSIX = process.platform === 'win32' ? 'has no process groups' : false;
/** Far more than a start of Node takes, far less than what hangs would. */
const LIMIT_MS = 5_000;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('processes over the time limit are killed with their children, and remaining processes at the end', {
  skip: POSIX,
}, async (t) => {
  const directory = temporaryDirectory(t);
  const program = join(directory, 'program.mjs');
  const pids = join(directory, 'pids');
  // One child hangs and has a child that holds the output. Another child outlives the program.
  writeFileSync(
    program,
    `import { spawn } from 'node:child_process';
     import { once } from 'node:events';
     import { writeFileSync } from 'node:fs';
     const start = (code) => spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
     const forever = 'setInterval(() => {}, 1000)';
     const hangs = start('console.log(require("child_process").spawn(process.execPath, ["-e", ' + JSON.stringify(forever) + '], { stdio: "inherit" }).pid); ' + forever);
     const [inner] = await once(hangs.stdout, 'data');
     const [, signal] = await once(hangs, 'close');
     const left = start(forever);
     writeFileSync(process.argv[2], [hangs.pid, Number(inner), left.pid].join(' '));
     left.unref();
     process.exit(signal === 'SIGKILL' ? 7 : 8);`,
  );
  const killed: string[] = [];
  const code = await runGroup({
    program: process.execPath,
    args: [program, pids],
    limitMs: LIMIT_MS,
    onKilled: (command) => killed.push(command),
  });
  assert.equal(code, 7);
  assert.ok(killed.length >= 1, 'killed processes are reported');
  for (const pid of readFileSync(pids, 'utf8').split(' ').map(Number)) {
    await eventually(`${pid} has exited`, () => !isAlive(pid));
  }
});

test('a new process with the number of an earlier one is not overdue', () => {
  const ages = new ProcessAges();
  assert.deepEqual(ages.olderThan(10, new Set([1, 2]), 100), []);
  assert.deepEqual(ages.olderThan(10, new Set([1]), 105), []);
  assert.deepEqual(ages.olderThan(10, new Set([1, 2]), 109), []);
  assert.deepEqual(ages.olderThan(10, new Set([1, 2]), 110), [1]);
  assert.deepEqual(ages.olderThan(10, new Set([1, 2]), 119), [1, 2]);
});

test('skipped tests are grouped by reason', async () => {
  async function* events() {
    yield { type: 'test:pass', data: { name: 'one', skip: 'needs wrk: apt-get install wrk' } };
    yield { type: 'test:pass', data: { name: 'two' } };
    yield { type: 'test:start', data: { name: 'three', skip: true } };
    yield { type: 'test:pass', data: { name: 'four', skip: 'needs wrk: apt-get install wrk' } };
  }
  const lines = (await Array.fromAsync(skippedTests(events()))).join('');
  assert.match(lines, /\n {2}needs wrk: apt-get install wrk\n {4}- one\n {4}- four\n$/);
  assert.doesNotMatch(lines, /two|three/);
  async function* none() {}
  assert.deepEqual(await Array.fromAsync(skippedTests(none())), []);
});
