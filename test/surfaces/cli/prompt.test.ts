import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { prompt, promptYes } from '../../../src/surfaces/cli/input.ts';

/** A terminal with typed text. Without text the input ends immediately. */
function person(typed: string) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  if (typed === '') stdin.end();
  else stdin.write(typed);
  const chunks: Buffer[] = [];
  stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const shown = async (): Promise<string> => {
    stderr.end();
    await finished(stderr);
    return Buffer.concat(chunks).toString();
  };
  return { io: { stdin, stdout, stderr, env: {} }, shown };
}

test('only yes means yes', async () => {
  for (const yes of ['y\r', 'Y\r', ' yes \r']) assert.equal(await promptYes(person(yes).io, 'Really?'), true, yes);
  for (const no of ['n\r', '\r', 'yeah\r', 'no yes\r'])
    assert.equal(await promptYes(person(no).io, 'Really?'), false, no);
  const { io, shown } = person('y\r');
  await promptYes(io, 'Really?');
  assert.match(await shown(), /Really\? \[y\/N\] /);
  assert.equal(io.stdout.read(), null);
});

test('does not echo a secret', async () => {
  const { io, shown } = person('correct horse\r');
  assert.equal(await prompt(io, 'password: ', true), 'correct horse');
  assert.equal(await shown(), 'password: \n');
});

test('an interrupt and the end of input close the prompt', async () => {
  for (const end of ['', '\u0003', '\u0004'])
    await assert.rejects(prompt(person(end).io, 'password: ', true), (error) => {
      assert.ok(error instanceof SvcError);
      return error.code === 'cancelled';
    });
});
