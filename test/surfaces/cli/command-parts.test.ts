import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { PARTS, partsFor } from '../../../src/surfaces/cli/command-parts.ts';
import { buildProgram } from '../../../src/surfaces/cli/program.ts';

const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
const ALWAYS = ['completion', 'complete'];

async function namesFor(...args: string[]): Promise<string[]> {
  const { commands } = await buildProgram(io, { version: '0', dataDir: '' }, args);
  return commands.flatMap((one) => [one.name(), ...one.aliases()]).filter((name) => !ALWAYS.includes(name));
}

test('each part says which commands are its own, and a command loads its part alone', async () => {
  for (const { names } of PARTS)
    for (const name of names) assert.deepEqual(await namesFor(name), names, `the commands that come with ${name}`);
  assert.deepEqual(
    await namesFor(),
    PARTS.flatMap(({ names }) => names),
  );
});

test('switches before a command are passed over; all parts are there where the parser has to find out', () => {
  assert.equal(partsFor(['status', 'peers']).length, 1);
  assert.deepEqual(partsFor(['--json', '--quiet', 'status']), partsFor(['status']));
  for (const args of [[], ['--json'], ['help', 'status'], ['--api', 'status', 'peers'], ['--help'], ['stauts']])
    assert.deepEqual(partsFor(args), PARTS, args.join(' '));
});
