import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { COMMAND_FILES, commandFilesFor } from '../../../src/surfaces/cli/command-files.ts';
import { buildProgram } from '../../../src/surfaces/cli/program.ts';

const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
const ALWAYS = ['completion', 'complete'];

async function namesFor(...args: string[]): Promise<string[]> {
  const { commands } = await buildProgram(io, { version: '0', dataDir: '' }, args);
  return commands.flatMap((one) => [one.name(), ...one.aliases()]).filter((name) => !ALWAYS.includes(name));
}

test('a command loads only its own file', async () => {
  for (const { names } of COMMAND_FILES)
    for (const name of names) assert.deepEqual(await namesFor(name), names, `the commands that come with ${name}`);
  assert.deepEqual(
    await namesFor(),
    COMMAND_FILES.flatMap(({ names }) => names),
  );
});

test('skips switches before a command, and loads all files if only the parser can tell', () => {
  assert.equal(commandFilesFor(['status', 'peers']).length, 1);
  assert.deepEqual(commandFilesFor(['--json', '--quiet', 'status']), commandFilesFor(['status']));
  for (const args of [[], ['--json'], ['help', 'status'], ['--api', 'status', 'peers'], ['--help'], ['stauts']])
    assert.deepEqual(commandFilesFor(args), COMMAND_FILES, args.join(' '));
});
