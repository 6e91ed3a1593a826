/** The runner of Windows, on this system: only the end of the process tree differs. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { answerOf, hasBegun, ProgramRun, resultOf } from '../../../src/capabilities/hooks/program-run.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { MAX_HOOK_ANSWER_BYTES, MAX_HOOK_OUTPUT_BYTES } from '../../../src/foundation/domain/hooks.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

async function start(t: TestContext, code: string, answers = false, words: readonly string[] = []) {
  const folder = temporaryDirectory(t);
  const dir = join(folder, 'run');
  const command = [process.execPath, '-e', code, ...words];
  const program = { command, folder, environment: { PATH: '' }, item: '{"a":1}\n', answers };
  return { folder, dir, run: await ProgramRun.start(dir, systemClock, program, 'win32') };
}

async function result(t: TestContext, ...program: [code: string, answers?: boolean, words?: readonly string[]]) {
  const { dir, run } = await start(t, ...program);
  await run.ended;
  return { ...(await resultOf(dir)), answer: await answerOf(dir) };
}

const CAT = 'process.stdin.pipe(process.stdout)';
const STAYS = 'setInterval(() => {}, 1000);';

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('the item is standard input, and arguments arrive as they are', async (t) => {
  assert.deepEqual(await result(t, CAT), { exitCode: 0, output: '{"a":1}\n', answer: null });
  const words = ['two words', '"', '%PATH%', '^', '', 'ü', 'a\nb'];
  const { output } = await result(t, 'console.log(JSON.stringify(process.argv.slice(1)))', false, words);
  assert.deepEqual(JSON.parse(output), words);
});

test('an answer is apart from errors, and a long one ends its program', async (t) => {
  const both = await result(t, 'console.log("yes"); console.error("oops"); process.exitCode = 3', true);
  assert.deepEqual(both, { exitCode: 3, output: 'oops\n', answer: Buffer.from('yes\n') });
  const full = await result(t, `process.stdout.write('x'.repeat(${MAX_HOOK_ANSWER_BYTES}))`, true);
  assert.equal(full.answer?.length, MAX_HOOK_ANSWER_BYTES);
  const long = await result(t, `${STAYS} process.stdout.write('x'.repeat(${MAX_HOOK_ANSWER_BYTES + 1}))`, true);
  assert.equal(long.answer, null);
  assert.notEqual(long.exitCode, 0);
});

test('the end of a long output is kept', async (t) => {
  const code = `process.stdout.write('y'.repeat(3e6) + 'the end', () => process.exit(5))`;
  const { exitCode, output } = await result(t, code);
  assert.equal(exitCode, 5);
  assert.equal(output.length, MAX_HOOK_OUTPUT_BYTES);
  assert.ok(output.endsWith('ythe end'));
});

test('a program that does not exist has the exit code of a shell', async (t) => {
  const dir = join(temporaryDirectory(t), 'run');
  const program = { command: ['/no/such'], folder: '/', environment: {}, item: '' };
  const run = await ProgramRun.start(dir, systemClock, program, 'win32');
  await run.ended;
  const { exitCode, output } = await resultOf(dir);
  assert.equal(exitCode, 127);
  assert.match(output, /ENOENT/);
  const lost = ProgramRun.start(dir, systemClock, { ...program, folder: '/no/such' }, 'win32');
  await assert.rejects(lost, { code: 'ENOENT' });
});

test('a process that was left behind with the output does not delay the result', async (t) => {
  const { folder, dir, run } = await start(
    t,
    `const { spawn } = require('node:child_process');
     const left = spawn(process.execPath, ['-e', '${STAYS}'], { detached: true, stdio: 'inherit' });
     require('node:fs').writeFileSync('pid', String(left.pid));
     process.stdout.write('y'.repeat(3e5) + 'end', () => process.exit(4));`,
  );
  await run.ended;
  process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL');
  const { exitCode, output } = await resultOf(dir);
  assert.equal(exitCode, 4);
  assert.ok(output.endsWith('yend'));
});

test('a signal ends the program with what it started, without a result', async (t) => {
  const { folder, dir, run } = await start(
    t,
    `const { spawn } = require('node:child_process');
     const own = spawn(process.execPath, ['-e', '${STAYS}'], { stdio: 'inherit' });
     require('node:fs').writeFileSync('pid', String(own.pid)); ${STAYS}`,
  );
  await eventually('it runs', () => existsSync(join(folder, 'pid')));
  run.signal('TERM');
  await run.ended;
  assert.equal((await resultOf(dir)).exitCode, null);
  assert.equal(hasBegun(dir), true);
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await eventually('the other process ended', () => !isAlive(pid));
});

test('another daemon takes a program over, waits for its result and can end it', async (t) => {
  const waits = `const { existsSync, writeFileSync } = require('node:fs'); writeFileSync('ready', '');
    setInterval(() => { if (existsSync('over')) { console.log('over'); process.exit(); } }, 10)`;
  const [first, second] = [await start(t, waits), await start(t, waits)];
  for (const { folder } of [first, second]) await eventually('it runs', () => existsSync(join(folder, 'ready')));
  const taken = ProgramRun.takeOver(first.dir, systemClock, 'win32');
  writeFileSync(join(first.folder, 'over'), '');
  await taken?.ended;
  assert.deepEqual(await resultOf(first.dir), { exitCode: 0, output: 'over\n' });
  const ended = ProgramRun.takeOver(second.dir, systemClock, 'win32');
  ended?.signal('KILL');
  await ended?.ended;
  await second.run.ended;
  assert.equal((await resultOf(second.dir)).exitCode, null);
  for (const { dir } of [first, second]) assert.equal(ProgramRun.takeOver(dir, systemClock, 'win32'), null);
});

test('a runner that starts after its run was given up starts no program', async (t) => {
  const folder = temporaryDirectory(t);
  const dir = join(folder, 'run');
  const command = [process.execPath, '-e', 'require("node:fs").writeFileSync("ran", "")'];
  const started = ProgramRun.start(dir, systemClock, { command, folder, environment: {}, item: '' }, 'win32');
  await eventually('its folder exists', () => existsSync(dir));
  assert.equal(ProgramRun.takeOver(dir, systemClock, 'win32'), null);
  await (await started).ended;
  assert.equal(existsSync(join(folder, 'ran')), false);
});
