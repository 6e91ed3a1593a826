import assert from 'node:assert/strict';
import fs, { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { answerOf, hasBegun, ProgramRun, resultOf } from '../../../src/capabilities/hooks/program-run.ts';
import type { RunningProgram } from '../../../src/capabilities/hooks/windows-run.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { MAX_HOOK_ANSWER_BYTES, MAX_HOOK_OUTPUT_BYTES } from '../../../src/foundation/domain/hooks.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '' };

async function start(t: TestContext, command: readonly string[], answers = false) {
  const folder = temporaryDirectory(t);
  const dir = join(folder, 'run');
  const program = { command, folder, environment: ENVIRONMENT, item: '{"a":1}\n', answers };
  return { folder, dir, run: await ProgramRun.start(dir, systemClock, program) };
}

async function result(t: TestContext, ...command: readonly string[]) {
  const { dir, run } = await start(t, command);
  await run.ended;
  return resultOf(dir);
}

test('the item is standard input, and the environment is clean', async (t) => {
  assert.deepEqual(await result(t, 'cat'), { exitCode: 0, output: '{"a":1}\n' });
  const { output } = await result(t, 'env');
  const names = output.split('\n').map((line) => line.split('=')[0]);
  // Node always passes NODE_V8_COVERAGE on.
  const expected = ['PATH', 'PWD', 'NODE_V8_COVERAGE', ''];
  assert.deepEqual(
    names.filter((name) => !expected.includes(name ?? '')),
    [],
  );
});

test('words of the command are no shell text', async (t) => {
  assert.deepEqual(await result(t, 'echo', '$(id) `id` "; id', '*'), { exitCode: 0, output: '$(id) `id` "; id *\n' });
  const { exitCode } = await result(t, 'exit', '0');
  assert.equal(exitCode, 127);
});

test('the end of a long output is kept', async (t) => {
  const { exitCode, output } = await result(t, '/bin/sh', '-c', 'yes | head -c 3000000; echo the end >&2; exit 5');
  assert.equal(exitCode, 5);
  assert.equal(output.length, MAX_HOOK_OUTPUT_BYTES);
  assert.ok(output.endsWith('the end\n'));
});

test('a program that handles SIGTERM may exit cleanly', async (t) => {
  const { folder, dir, run } = await start(t, [
    '/bin/sh',
    '-c',
    'trap "echo bye; exit 0" TERM; sleep 1000 & : >ready; wait',
  ]);
  await eventually('it is ready', () => existsSync(join(folder, 'ready')));
  run.signal('TERM');
  await run.ended;
  assert.deepEqual(await resultOf(dir), { exitCode: 0, output: 'bye\n' });
});

function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('processes that a program leaves in its group end with it', async (t) => {
  const { folder, run } = await start(t, ['/bin/sh', '-c', 'sleep 1000 >/dev/null 2>&1 & echo $! >pid']);
  await run.ended;
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await eventually('it ended', () => !isAlive(pid));
});

/** Ways to leave a process that holds every descriptor of the program. Each writes its process ID to `pid`. */
const LEAVES: Readonly<Record<string, string>> = {
  'in its group': 'sleep 1000 & echo $! >pid',
  'in another session': "setsid sh -c 'echo $$ >pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done",
};

describe('a program that leaves a process with its output', () => {
  /** Waits for the end of a run and kills what it left. */
  async function finished({ folder, run }: { folder: string; run: RunningProgram }): Promise<void> {
    await run.ended;
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  }

  for (const [place, leave] of Object.entries(LEAVES)) {
    test(`${place} ends with its exit code, and its whole output is kept`, async (t) => {
      const { dir, ...started } = await start(t, [
        '/bin/sh',
        '-c',
        `${leave}; yes | head -c 3000000; echo the end >&2; exit 5`,
      ]);
      await finished(started);
      const { exitCode, output } = await resultOf(dir);
      assert.equal(exitCode, 5);
      assert.equal(output.length, MAX_HOOK_OUTPUT_BYTES);
      assert.ok(output.endsWith('y\nthe end\n'));
    });

    test(`${place} answers with all it wrote`, async (t) => {
      const text = `${leave}; echo note >&2; head -c ${MAX_HOOK_ANSWER_BYTES} /dev/zero`;
      const { dir, ...started } = await start(t, ['/bin/sh', '-c', text], true);
      await finished(started);
      assert.deepEqual(await resultOf(dir), { exitCode: 0, output: 'note\n' });
      assert.equal((await answerOf(dir))?.length, MAX_HOOK_ANSWER_BYTES);
    });
  }

  test('that never stops writing ends', async (t) => {
    const text = "setsid sh -c 'echo $$ >pid; exec yes' & while [ ! -s pid ]; do sleep 0.01; done";
    const { folder, dir, run } = await start(t, ['/bin/sh', '-c', text]);
    await run.ended;
    assert.equal((await resultOf(dir)).exitCode, 0);
    const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
    await eventually('the other process has no reader', () => !isAlive(pid));
  });

  test('ends for a daemon that took it over', async (t) => {
    const { folder, dir, run } = await start(t, [
      '/bin/sh',
      '-c',
      `${LEAVES['in another session']}; while [ ! -f over ]; do sleep 0.01; done; echo over`,
    ]);
    await eventually('it runs', () => existsSync(join(folder, 'pid')));
    const taken = ProgramRun.takeOver(dir, systemClock);
    assert.ok(taken !== null);
    writeFileSync(join(folder, 'over'), '');
    await taken.ended;
    await finished({ folder, run });
    assert.deepEqual(await resultOf(dir), { exitCode: 0, output: 'over\n' });
  });
});

test('a killed script leaves no program, and no result', async (t) => {
  const { folder, dir, run } = await start(t, [
    '/bin/sh',
    '-c',
    'trap "" TERM; ps -o pgid= -p $$ >group; echo $$ >pid; while :; do sleep 0.05; done',
  ]);
  await eventually(
    'it runs',
    () => existsSync(join(folder, 'pid')) && readFileSync(join(folder, 'pid'), 'utf8') !== '',
  );
  // The leader of the group is the script.
  process.kill(Number(readFileSync(join(folder, 'group'), 'utf8')), 'SIGKILL');
  await run.ended;
  assert.equal((await resultOf(dir)).exitCode, null);
  assert.equal(hasBegun(dir), true);
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await eventually('it ended', () => !isAlive(pid));
});

test('another daemon takes a program over and can end it', async (t) => {
  const { folder, dir, run } = await start(t, [
    '/bin/sh',
    '-c',
    'trap "" TERM; : >ready; while :; do sleep 0.05; done',
  ]);
  await eventually('it is ready', () => existsSync(join(folder, 'ready')));
  const taken = ProgramRun.takeOver(dir, systemClock);
  assert.ok(taken !== null);
  taken.signal('TERM');
  taken.signal('KILL');
  await taken.ended;
  await run.ended;
  assert.equal(ProgramRun.takeOver(dir, systemClock), null);
});

test('another daemon can end programs that have just started', async (t) => {
  const end = async (): Promise<void> => {
    const { folder, dir, run } = await start(t, ['/bin/sh', '-c', ': >ready; exec sleep 30']);
    while (!existsSync(join(folder, 'ready'))) await turn();
    ProgramRun.takeOver(dir, systemClock)?.signal('TERM');
    await run.ended;
    assert.notEqual((await resultOf(dir)).exitCode, 0);
  };
  // Together they are slow enough that parts of their scripts are not running yet.
  for (let round = 0; round < 2; round++) await Promise.all(Array.from({ length: 60 }, end));
});

describe('a program that answers', () => {
  async function answer(t: TestContext, text: string) {
    const { dir, run } = await start(t, ['/bin/sh', '-c', text], true);
    await run.ended;
    return { ...(await resultOf(dir)), answer: await answerOf(dir) };
  }

  test('has its standard output apart from its errors', async (t) => {
    const given = await answer(t, 'cat; echo oops >&2; exit 3');
    assert.deepEqual(given, { exitCode: 3, output: 'oops\n', answer: Buffer.from('{"a":1}\n') });
    assert.deepEqual((await answer(t, 'exit 0')).answer, Buffer.alloc(0));
  });

  test('may write as much as the limit', async (t) => {
    const full = await answer(t, `head -c ${MAX_HOOK_ANSWER_BYTES} /dev/zero`);
    assert.deepEqual([full.exitCode, full.answer?.length], [0, MAX_HOOK_ANSWER_BYTES]);
    const long = await answer(t, 'exec yes');
    assert.notEqual(long.exitCode, 0);
    assert.equal(long.answer, null);
    const stubborn = await answer(t, `head -c ${MAX_HOOK_ANSWER_BYTES + 1} /dev/zero; exit 0`);
    assert.equal(stubborn.answer, null);
  });
});

/** The open files of this process in a folder. */
function openFilesIn(folder: string): readonly string[] {
  return readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    })
    .filter((path) => path.startsWith(folder));
}

for (const [nth, name] of [
  [1, 'alive'],
  [2, 'alive'],
  [1, 'item.json'],
] as const)
  test(`a start that cannot open ${name} (open ${nth}) leaves no file open`, async (t) => {
    const { openSync } = fs;
    let opened = 0;
    t.mock.method(fs, 'openSync', (...args: Parameters<typeof openSync>) => {
      const isIt = String(args[0]).endsWith(`/${name}`) && ++opened === nth;
      if (isIt) throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
      return openSync(...args);
    });
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    const folder = temporaryDirectory(t);
    const program = { command: ['true'], folder, environment: ENVIRONMENT, item: '{}\n' };
    await assert.rejects(ProgramRun.start(join(folder, 'run'), systemClock, program), { code: 'EMFILE' });
    assert.deepEqual(openFilesIn(folder), []);
  });
