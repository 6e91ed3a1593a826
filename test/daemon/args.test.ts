import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DaemonArguments, daemonProgram, optionsOf } from '../../src/daemon/args.ts';

async function parse(...args: string[]): Promise<DaemonArguments> {
  let parsed: DaemonArguments | undefined;
  const program = daemonProgram('1.0.0', '/default', async (given) => {
    parsed = given;
  });
  await program.parseAsync(args, { from: 'user' });
  assert.ok(parsed !== undefined);
  return parsed;
}

test('a service runs the daemon with the options that it was given', async () => {
  const options = [
    '--data-dir',
    '/d',
    '--listen',
    ':4131',
    '--api-addr',
    '127.0.0.1:1',
    '--fallback-host',
    'h',
    '--bootstrap',
    'a:1',
  ];
  const { supervise, ...given } = await parse(...options, '--no-open-browser', 'service', 'run');
  assert.equal(supervise, true);
  assert.deepEqual(await parse(...optionsOf(given)), given);
  const bare = await parse('service', 'run', '--data-dir', '/d');
  assert.deepEqual(optionsOf(bare), ['--data-dir', '/d', '--config', '/d/config.toml', '--no-open-browser']);
});
