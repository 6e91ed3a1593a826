import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { Releases } from '../../../src/capabilities/update/releases.ts';
import { Updater } from '../../../src/capabilities/update/updater.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { updateHandlers } from '../../../src/operations/handlers/process.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { bind } from '../../../src/operations/operation.ts';
import { updateOperations } from '../../../src/operations/process.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { TestClock } from '../../support/test-clock.ts';

function setUp(t: TestContext, { managed = true, disabled = '' } = {}) {
  const memory = new Map<string, unknown>();
  const switched: string[] = [];
  const release = { version: '1.1.0', tarball: new URL('http://127.0.0.1/x'), integrity: 'sha512-x', node: '*' };
  let looks = 0;
  const updater = new Updater(
    { currentVersion: '1.0.0', disabled },
    {
      source: { latest: async () => (looks++, { version: '1.1.0', release }) },
      installer: { install: async () => {} },
      releases: new Releases(temporaryDirectory(t)),
      supervisor: managed ? { switchTo: (version) => void switched.push(version), restart: () => {} } : null,
      store: { get: (key) => memory.get(key), set: (key, value) => void memory.set(key, value) },
      clock: new TestClock(),
      log: silentLog,
    },
  );
  const operations = new Map(
    bind(updateOperations, updateHandlers({ updater })).map((one) => [one.declaration.name, one]),
  );
  const call = async (name: string, query: object = {}, body: object = {}): Promise<unknown> => {
    const operation = operations.get(name);
    assert.ok(operation !== undefined);
    const input = compileInput(operation.declaration)({ params: {}, query: { ...query }, body });
    const context = {
      origin: 'remote_admin',
      signal: new AbortController().signal,
      requireToken: () => {},
      setStatus: () => {},
    } as const;
    const output: unknown = JSON.parse(JSON.stringify(await operation.run(input, context)));
    assert.ok(Compile(operation.declaration.output).Check(output), JSON.stringify(output));
    return output;
  };
  return { call, switched, looks: () => looks };
}

const UNASKED = {
  current_version: '1.0.0',
  latest_version: null,
  update_available: false,
  state: 'idle',
  last_check_at: null,
  managed: true,
};

test('the status checks the registry only on request', async (t) => {
  const { call, looks } = setUp(t);
  assert.deepEqual(await call('updateStatus'), UNASKED);
  assert.deepEqual(await call('updateStatus', { check: 'false' }), UNASKED);
  assert.equal(looks(), 0);
  const asked = {
    ...UNASKED,
    latest_version: '1.1.0',
    update_available: true,
    last_check_at: '2026-01-01T00:00:00.000Z',
  };
  assert.deepEqual(await call('updateStatus', { check: 'true' }), asked);
  assert.equal(looks(), 1);
});

test('apply accepts any body and ignores a version in it', async (t) => {
  const { call, switched } = setUp(t);
  const answer = await call('updateApply', {}, { version: '0.0.1', registry: 'http://127.0.0.1' });
  assert.deepEqual(Object.keys(answer as object), ['message']);
  await eventually('the switch', () => switched.length > 0);
  assert.deepEqual(switched, ['1.1.0']);
});

test('if nothing can be installed, the response gives the reason', async (t) => {
  const alone = setUp(t, { managed: false });
  assert.match(JSON.stringify(await alone.call('updateApply')), /"warning":".*Install the new version by hand/);
  await eventually('the check', () => alone.looks() > 0);
  assert.deepEqual(alone.switched, []);
  const checkout = setUp(t, { disabled: 'This is a checkout.' });
  assert.match(JSON.stringify(await checkout.call('updateApply')), /"warning":"This is a checkout\."/);
  const status = { ...UNASKED, managed: false, warning: 'This is a checkout.' };
  assert.deepEqual(await checkout.call('updateStatus', { check: 'true' }), status);
  assert.equal(checkout.looks(), 0);
});
