import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { PASSPHRASE_COST } from '../../../src/foundation/keys/passphrase.ts';
import { CliContext } from '../../../src/surfaces/cli/context.ts';
import { newPassword, readPassword } from '../../../src/surfaces/cli/password.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** A terminal that answers each prompt with the next text. */
function atTerminal(...answers: readonly string[]) {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const left = [...answers];
  let shown = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    const answer = text.endsWith(': ') ? left.shift() : undefined;
    // The prompt is printed just before it reads.
    if (answer !== undefined) setImmediate(() => stdin.write(`${answer}\r`));
  });
  return { context: new CliContext({ stdin, stdout, stderr, env: {} }, {}, '/nonexistent'), shown: () => shown };
}

/** The password of the file, at the full cost. */
const HORSE = { text: 'correct horse', cost: PASSPHRASE_COST };

function piped(text: string): CliContext {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.end(text);
  return new CliContext({ stdin, stdout, stderr, env: {} }, {}, '/nonexistent');
}

function failsWith(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof SvcError && error.code === 'invalid_request' && message.test(error.message);
}

test('prompts twice for a new password without showing it', async () => {
  const { context, shown } = atTerminal('correct horse', 'correct horse');
  assert.deepEqual(await newPassword(context, {}), HORSE);
  assert.match(shown(), /New password: [^]*Repeat the password: /);
  assert.ok(!shown().includes('horse'));
  await assert.rejects(newPassword(atTerminal('correct horse', 'correct house').context, {}), failsWith(/differ/));
  await assert.rejects(newPassword(atTerminal('short').context, {}), failsWith(/fewer than 8/));
});

test('prompts once for an existing password', async () => {
  assert.deepEqual(await readPassword(atTerminal('correct horse').context, {}), HORSE);
});

test('reads a password from a pipe or from the first line of a file', async (t) => {
  assert.deepEqual(await newPassword(piped('correct horse\n'), {}), HORSE);
  assert.deepEqual(await newPassword(piped('correct horse\ncorrect horse\r\n'), {}), HORSE, 'as at a prompt');
  await assert.rejects(newPassword(piped('correct horse\ncorrect house\n'), {}), failsWith(/first line is the secret/));
  await assert.rejects(readPassword(piped('\ncorrect horse'), {}), failsWith(/first line is the secret/));
  await assert.rejects(readPassword(piped(''), {}), failsWith(/empty/));
  const password_file = join(temporaryDirectory(t), 'password');
  writeFileSync(password_file, 'correct horse\r\nmore\n');
  assert.deepEqual(await newPassword(piped('other'), { password_file }), HORSE);
  await assert.rejects(newPassword(piped(''), { password_file: `${password_file}2` }), failsWith(/cannot be read/));
});
