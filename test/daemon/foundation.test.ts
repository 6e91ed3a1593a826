import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { DaemonArguments } from '../../src/daemon/args.ts';
import { openFoundation } from '../../src/daemon/foundation.ts';
import { Life } from '../../src/daemon/life.ts';
import { KeyStore } from '../../src/foundation/keys/key-store.ts';
import { PASSPHRASE_COST } from '../../src/foundation/keys/passphrase.ts';
import { silentLog } from '../../src/foundation/log.ts';
import type { RecentLog } from '../../src/foundation/recent-log.ts';
import { PROXY_VARIABLES } from '../../src/network/transport/tls/proxy.ts';
import { cheapPassphrase } from '../support/cheap-scrypt.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const QUIET = { SVCD_LOG_LEVEL: 'error' };

function argumentsIn(t: TestContext): DaemonArguments {
  const dataDir = temporaryDirectory(t);
  return { dataDir, configFile: join(dataDir, 'config.toml'), flags: {} };
}

/** Opens a foundation and closes it. */
async function opened<T>(
  args: DaemonArguments,
  environment: NodeJS.ProcessEnv,
  look: (foundation: Awaited<ReturnType<typeof openFoundation>>) => T | Promise<T>,
): Promise<T> {
  const life = new Life();
  try {
    return await look(await openFoundation(args, { ...QUIET, ...environment }, life));
  } finally {
    await life.end();
  }
}

test('a node keeps its identity after a restart, and releases its data directory', async (t) => {
  const args = argumentsIn(t);
  const aid = await opened(args, {}, ({ node }) => node.aid);
  assert.equal(await opened(args, {}, ({ node }) => node.aid), aid);
  await opened(args, {}, async () => {
    await assert.rejects(
      opened(args, {}, () => null),
      { code: 'already_running' },
    );
  });
});

test('a failed start releases the data directory', async (t) => {
  const args = argumentsIn(t);
  const life = new Life();
  await assert.rejects(openFoundation(args, { ...QUIET, SVCD_LOG_FORMAT: 'yaml' }, life), { code: 'config_invalid' });
  await life.end();
  assert.equal(typeof (await opened(args, {}, ({ node }) => node.aid)), 'string');
});

test('a passphrase in the environment always seals the keys at full cost', async (t) => {
  const args = argumentsIn(t);
  const sealed = { SVCD_KEY_PASSPHRASE: 'correct horse' };
  const aid = await opened(args, { ...sealed, SVCD_SCRYPT_N: '2', SVCD_PASSPHRASE_COST: '2' }, ({ node }) => node.aid);
  await assert.rejects(
    opened(args, {}, () => null),
    { code: 'key_locked' },
  );
  const directory = join(args.dataDir, 'keys');
  const open = (passphrase: ReturnType<typeof cheapPassphrase>) =>
    KeyStore.open({ directory, passphrase }, { log: silentLog });
  await assert.rejects(open(cheapPassphrase('correct horse')), { code: 'key_locked' });
  const keys = await open({ text: 'correct horse', cost: PASSPHRASE_COST });
  assert.deepEqual(keys.list(), ['node']);
  assert.equal(await opened(args, sealed, ({ node }) => node.aid), aid);
});

test('a proxy in quotes is rejected, if svcd would use it', async (t) => {
  const args = argumentsIn(t);
  const none = Object.fromEntries(PROXY_VARIABLES.map((name) => [name, '']));
  const start = (environment: NodeJS.ProcessEnv) => opened(args, { ...none, ...environment }, () => null);
  for (const name of PROXY_VARIABLES)
    await assert.rejects(start({ [name]: '"http://proxy.example:3128"' }), {
      code: 'config_invalid',
      message: `${name} is in quotes that belong to the value: write it without quotes.`,
    });
  await start({ https_proxy: 'http://proxy.example:3128\r', ALL_PROXY: '"socks5://proxy.example"' });
  await start({ HTTPS_PROXY: "'proxy.example:3128'", SVCD_PROXY: 'none' });
});

test('a passphrase in quotes is used as it is, with a warning, and named if it opens nothing', async (t) => {
  const args = argumentsIn(t);
  const warned = ({ recentLog }: { readonly recentLog: RecentLog }): boolean =>
    recentLog.read('warn', 10, 0).some(({ message }) => /SVCD_KEY_PASSPHRASE is in quotes/.test(message));
  const start = (passphrase: string) =>
    opened(args, { SVCD_LOG_LEVEL: 'warn', SVCD_KEY_PASSPHRASE: passphrase }, warned);
  assert.equal(await start('correct horse'), false);
  await assert.rejects(start('"correct horse"'), {
    code: 'key_locked',
    message: /does not open the key store\. SVCD_KEY_PASSPHRASE is in quotes, which are part .*: try it without\.$/,
  });
  await assert.rejects(start('correct horse\r'), { code: 'key_locked', message: /ends with a line break/ });
  await assert.rejects(start('wrong'), { code: 'key_locked', message: /does not open the key store\.$/ });
  const other = argumentsIn(t);
  assert.equal(await opened(other, { SVCD_KEY_PASSPHRASE: '"correct horse"', SVCD_LOG_LEVEL: 'warn' }, warned), true);
});

test('keys are in key_dir, and an object directory that contains them is rejected', async (t) => {
  const args = argumentsIn(t);
  const keys = join(temporaryDirectory(t), 'elsewhere');
  await opened(args, { SVCD_KEY_DIR: keys }, () => assert.ok(existsSync(join(keys, 'node.key'))));
  assert.ok(!existsSync(join(args.dataDir, 'keys')));
  await assert.rejects(
    opened(args, { SVCD_KEY_DIR: keys, SVCD_FILES_ROOT: keys }, () => null),
    { code: 'config_invalid' },
  );
  const files = join(args.dataDir, 'files');
  mkdirSync(files);
  writeFileSync(args.configFile, `key_dir = "${keys}"\nfiles_root = "${files}"\n`, { mode: 0o600 });
  await opened(args, {}, ({ config }) => assert.equal(config.key_dir, keys));
});
