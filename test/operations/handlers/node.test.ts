import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ConfigService } from '../../../src/foundation/config/config-service.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { hostReport } from '../../../src/operations/handlers/host-report.ts';
import { nodeHandlers } from '../../../src/operations/handlers/node.ts';
import { nodeOperations } from '../../../src/operations/node.ts';
import { bind, type CallContext } from '../../../src/operations/operation.ts';

const context: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};

function handlers(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'svcd-config-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = join(dir, 'config.toml');
  writeFileSync(file, 'api_token = "a-secret-token"\n', { mode: 0o600 });
  const config = new ConfigService({ file, environment: {}, flags: { api_addr: '127.0.0.1:3131' } });
  const set: string[] = [];
  const report = (name: string) => () => ({ name });
  const operations = bind(
    nodeOperations,
    nodeHandlers({
      status: () => {
        throw new SvcError('internal');
      },
      config,
      filesRoot: {
        set: (path) => {
          config.set('files_root', path);
          set.push(path);
          return { path, left: 0, overridden: false };
        },
      },
      rollback: { isRolledBack: true, confirm: () => void set.push('confirmed') },
      debug: {
        identity: report('identity'),
        routing: report('routing'),
        store: report('store'),
        stats: report('stats'),
        host: () => hostReport({ api: '127.0.0.1:1' }),
      },
    }),
  );
  const run = async (name: string, input: Record<string, unknown> = {}): Promise<unknown> => {
    const operation = operations.find(({ declaration }) => declaration.name === name);
    assert.ok(operation, name);
    return operation.run(input, { ...context, requireToken: () => void set.push('token') });
  };
  return { run, file, set };
}

test('the configuration is shown without its secrets, and with the values from other sources', async (t) => {
  const { run } = handlers(t);
  const shown = await run('configGet');
  assert.ok(!JSON.stringify(shown).includes('a-secret-token'));
  assert.deepEqual(Reflect.get(Object(shown), 'overridden'), { api_addr: 'flag' });
  assert.deepEqual(Reflect.get(Object(shown), 'restart_required'), []);
  assert.equal(Reflect.get(Object(shown), 'auto_publish'), true);
});

test('a patch is applied completely or not at all, and names a refused key as every refused body does', async (t) => {
  const { run, file } = handlers(t);
  const before = readFileSync(file, 'utf8');
  for (const [key, value] of [
    ['files_root', '/tmp'],
    ['no_such_key', 1],
    ['log_level', 'loud'],
    ['min_observed_peers', '3'],
    ['api_addr', 'nonsense'],
  ] as const) {
    await assert.rejects(run('configPatch', { auto_publish: false, [key]: value }), (error) => {
      assert.ok(error instanceof SvcError);
      assert.equal(error.code, 'invalid_request', key);
      assert.equal(error.details?.['path'], `/${key}`);
      return true;
    });
  }
  assert.equal(readFileSync(file, 'utf8'), before);
});

test('the files folder is set with the token, and a refused folder is named as in every refused body', async (t) => {
  const { run, set } = handlers(t);
  assert.deepEqual(await run('filesRootSet', { path: '/srv/files' }), {
    ok: true,
    files_root: '/srv/files',
    objects_left: 0,
    overridden: false,
  });
  assert.deepEqual(set, ['token', '/srv/files']);
  await assert.rejects(run('filesRootSet', { path: 'relative' }), { code: 'invalid_request' });
});

test('a patch reports settings that need a restart', async (t) => {
  const { run, file } = handlers(t);
  const result = await run('configPatch', { auto_publish: false, min_observed_peers: 5 });
  assert.deepEqual(result, { ok: true, restart_required: ['min_observed_peers'], overridden: [] });
  assert.match(readFileSync(file, 'utf8'), /min_observed_peers = 5/);
});

test('the reports are returned unchanged', async (t) => {
  const { run } = handlers(t);
  assert.deepEqual(await run('health'), { status: 'ok' });
  for (const name of ['identity', 'routing', 'store', 'stats'])
    assert.deepEqual(await run(`debug${name.charAt(0).toUpperCase()}${name.slice(1)}`), { name });
  const host = await run('debugHost');
  assert.deepEqual(Reflect.get(Object(host), 'bound'), { api: '127.0.0.1:1' });
  assert.equal(Reflect.get(Object(host), 'pid'), process.pid);
  assert.ok(Object.hasOwn(Object(await run('configSchema')), 'properties'));
});

test('the access lists are confirmed with the token', async (t) => {
  const { run, set } = handlers(t);
  assert.deepEqual(await run('accessConfirm'), { ok: true, was_closed: true });
  assert.deepEqual(set, ['token', 'confirmed']);
});
