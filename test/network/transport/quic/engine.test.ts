import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { enginePackages, findEngine, loadEngine } from '../../../../src/network/transport/quic/engine.ts';

const part = (): void => {};
const engine = { QuinnConfig: part, Server: part, Client: part };

test('the package name depends on platform, processor and C library', () => {
  assert.deepEqual(enginePackages('darwin', 'arm64'), ['@chainsafe/libp2p-quic-darwin-arm64']);
  assert.deepEqual(enginePackages('win32', 'x64'), ['@chainsafe/libp2p-quic-win32-x64-msvc']);
  assert.deepEqual(enginePackages('linux', 'x64'), [
    '@chainsafe/libp2p-quic-linux-x64-gnu',
    '@chainsafe/libp2p-quic-linux-x64-musl',
  ]);
});

test('if a package is missing or cannot be loaded, the next one is tried', () => {
  const asked: string[] = [];
  const found = loadEngine(
    (name) => {
      asked.push(name);
      if (name.endsWith('-gnu')) throw new Error('wrong C library');
      return engine;
    },
    'linux',
    'arm64',
  );
  assert.equal(found, engine);
  assert.deepEqual(asked, ['@chainsafe/libp2p-quic-linux-arm64-gnu', '@chainsafe/libp2p-quic-linux-arm64-musl']);
});

test('without an engine the error names the package, and keeps the first cause', () => {
  const cause = new Error('cannot find it');
  const load = (): unknown =>
    loadEngine(
      () => {
        throw cause;
      },
      'darwin',
      'x64',
    );
  assert.throws(load, { code: 'internal', message: /@chainsafe\/libp2p-quic-darwin-x64/, cause });
});

test('without an engine a node listens to nothing and reaches nothing', async () => {
  const { engine, missing } = findEngine(undefined, () => {
    throw new Error('no package');
  });
  assert.equal(missing, 'no package');
  const server = new engine.Server({}, '', 2123);
  assert.equal(server.port(), 2123);
  await assert.rejects(new engine.Client({}, 0).outboundConnection('192.0.2.1', 2123));
  await server.abort();
});

test('a package with other exports is rejected', () => {
  for (const wrong of [null, 'text', {}, { ...engine, Client: 'not a class' }]) {
    assert.throws(() => loadEngine(() => wrong, 'freebsd', 'x64'), { code: 'internal' });
  }
});

test('one processor is reserved for JavaScript, unless the environment overrides it', (t) => {
  const before = process.env['TOKIO_WORKER_THREADS'];
  t.after(() => {
    if (before === undefined) delete process.env['TOKIO_WORKER_THREADS'];
    else process.env['TOKIO_WORKER_THREADS'] = before;
  });
  delete process.env['TOKIO_WORKER_THREADS'];
  loadEngine(() => engine);
  assert.equal(process.env['TOKIO_WORKER_THREADS'], String(Math.max(1, availableParallelism() - 1)));
  process.env['TOKIO_WORKER_THREADS'] = '7';
  loadEngine(() => engine);
  assert.equal(process.env['TOKIO_WORKER_THREADS'], '7');
});

test('the engine for this machine is installed', () => {
  assert.equal(typeof loadEngine().Server, 'function');
});
