import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { CliContext } from '../../../src/surfaces/cli/context.ts';
import { readVia } from '../../../src/surfaces/cli/program.ts';
import { one } from '../../support/event-world.ts';

function local(env: Readonly<Record<string, string>>, input?: string): CliContext {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  if (input !== undefined) stdin.end(input);
  return new CliContext({ stdin, stdout, stderr, env }, {}, '/nonexistent');
}

async function presented(context: CliContext, viaPassword: boolean): Promise<string | undefined> {
  return (await readVia(context, { via: one, viaPassword }))?.headers['svc-access-token'];
}

test('without a terminal the password comes from the environment', async () => {
  const kept = { SVC_VIA_PASSWORD: 'correct horse' };
  assert.equal(await presented(local(kept, ''), true), 'correct horse');
  assert.equal(await presented(local(kept), true), 'correct horse');
  assert.equal(await presented(local(kept), false), 'correct horse');
});

test('otherwise it comes from standard input, and must not be empty', async () => {
  assert.equal(await presented(local({}, 'correct horse\n'), true), 'correct horse');
  const empty = (error: unknown): boolean => error instanceof SvcError && /password is empty/.test(error.message);
  await assert.rejects(presented(local({}, ''), true), empty);
  assert.equal(await presented(local({}), false), undefined);
});
