import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { test } from 'node:test';
import {
  type DaemonArguments,
  daemonOptions,
  daemonProgram,
  exitCodeOf,
  throwUsageErrors,
  withTwoDashes,
} from '../../src/daemon/args.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { formatInvitation } from '../../src/foundation/invitation.ts';
import { runOk } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

async function parse(...args: string[]): Promise<DaemonArguments> {
  let parsed: DaemonArguments | undefined;
  const program = daemonProgram(
    '1.0.0',
    () => '/default',
    async (given) => {
      parsed = given;
    },
  );
  await program.parseAsync(args, { from: 'user' });
  assert.ok(parsed !== undefined);
  return parsed;
}

test('a service runs the daemon with the given options', async () => {
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
    '--join',
    'b:2',
  ];
  const { supervise, ...given } = await parse(...options, '--no-open-browser', 'service', 'run');
  assert.equal(supervise, true);
  assert.deepEqual(await parse(...daemonOptions(given)), given);
  const bare = await parse('service', 'run', '--data-dir', '/d');
  assert.deepEqual(daemonOptions(bare), ['--data-dir', '/d', '--config', '/d/config.toml', '--no-open-browser']);
});

test('an MCP client starts the configured node', async () => {
  const config = join(import.meta.dirname, '../../package.json');
  const args = ['bin/svcd', '--config', config, '--listen', ':5555', '--mcp-profile', 'core', 'mcp', 'print', 'cursor'];
  const set = { SVCD_DATA_DIR: 'other', SVCD_NETWORK: 'mine', SVCD_API_TOKEN: 'secret', SVCD_KEY_DIR: '' };
  const { SVCD_MDNS: _, ...own } = process.env;
  const { mcpServers } = JSON.parse(await runOk(process.execPath, args, { env: { ...own, ...set } }));
  const [script = '', ...options] = mcpServers.svcd.args;
  assert.ok(isAbsolute(script));
  assert.deepEqual(options, [
    ...['--mcp-stdio', '--data-dir', resolve('other'), '--config', config, '--listen', ':5555'],
    ...['--mcp-profile', 'core'],
  ]);
  assert.deepEqual(mcpServers.svcd.env, { SVCD_NETWORK: 'mine' });
  const bare = JSON.parse(await runOk(process.execPath, ['bin/svcd', 'mcp', 'print', 'cursor'], { env: own }));
  assert.deepEqual(bare.mcpServers.svcd.args.slice(1), ['--mcp-stdio', '--mcp-profile', 'lean']);
});

test('an invitation also sets the network, and damaged ones are rejected before the start', async () => {
  const { publicKey } = KeyPair.generate();
  const contacts = [{ host: '203.0.113.7', port: 4121, nodeKey: publicKey }];
  const line = formatInvitation({ from: nativeAid(publicKey), network: 'office', contacts });
  const { flags, join: text, ...rest } = await parse('--join', line);
  assert.deepEqual([flags.network, text], ['office', line]);
  assert.deepEqual(await parse(...daemonOptions({ ...rest, flags, join: line }).slice(0, -1)), {
    ...rest,
    join: line,
    flags: { ...flags, open_browser: undefined },
  });
  assert.equal((await parse('--join', 'node.example')).flags.network, undefined);
});

test('service options may have one dash', async () => {
  assert.deepEqual(withTwoDashes(['-data-dir', '/d', '-user', '-V', '--user', '-users', '-data-dir=/d']), [
    '--data-dir',
    '/d',
    '--user',
    '-V',
    '--user',
    '-users',
    '--data-dir=/d',
  ]);
  const { supervise, dataDir } = await parse(...withTwoDashes(['service', 'run', '-data-dir', '/d']));
  assert.deepEqual([supervise, dataDir], [true, '/d']);
});

test('a given configuration file must exist, the default one need not', async (t) => {
  const directory = temporaryDirectory(t);
  const usual = join(directory, 'config.toml');
  assert.equal((await parse('--data-dir', directory)).configFile, usual);
  assert.equal((await parse('--data-dir', directory, '--config', usual)).configFile, usual);
  const named = join(directory, 'named.toml');
  for (const how of [[], ['--mcp-stdio'], ['service', 'run']]) {
    await assert.rejects(parse('--data-dir', directory, '--config', named, ...how), (error: unknown) => {
      assert.ok(error instanceof SvcError && error.message.includes(`${named} does not exist`));
      assert.equal(exitCodeOf(error), 2);
      return true;
    });
  }
  writeFileSync(named, '');
  assert.equal((await parse('--data-dir', directory, '--config', named)).configFile, named);
});

test('wrong usage exits with code 2 in every command', async () => {
  const output: string[] = [];
  const exit = async (...args: string[]): Promise<number> => {
    const program = throwUsageErrors(
      daemonProgram(
        '1.0.0',
        () => '/default',
        async () => {},
      ),
    );
    const quiet = (command: typeof program): void => {
      command.configureOutput({ writeOut: () => {}, writeErr: (text) => void output.push(text) });
      command.commands.forEach(quiet);
    };
    quiet(program);
    return program.parseAsync(args, { from: 'user' }).then(() => 0, exitCodeOf);
  };
  assert.equal(await exit('--nope'), 2);
  assert.deepEqual(output, [
    "svcd: unknown option '--nope'\n",
    '(see svcd --help; commands for a running daemon: svc --help)\n',
  ]);
  assert.equal(await exit('extra'), 2);
  assert.equal(await exit('--mcp-stdio', '--mcp-profile', 'nope'), 2);
  assert.equal(await exit('--join', 'svc://x/join/y'), 2);
  assert.equal(await exit('mcp'), 2);
  assert.equal(await exit('mcp', 'print', 'nope'), 2);
  assert.equal(await exit('service', 'nope'), 2);
  assert.equal(await exit('--help'), 0);
  assert.equal(await exit('mcp', 'print', '--help'), 0);
  assert.equal(await exit('--version'), 0);
  assert.equal(exitCodeOf(new SvcError('not_found')), 5);
  assert.equal(exitCodeOf(new Error('other')), 1);
});
