import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callsOf, keepCall, MAX_CALLS } from '../../panel/src/lib/history.ts';

function call(path: string) {
  return { method: 'GET', path, headers: '', body: '' };
}

test('calls are stored newest first, each once, up to a limit', () => {
  for (const path of ['/a', '/b', '/a']) keepCall('aid1x', call(path));
  assert.deepEqual(
    callsOf('aid1x').map(({ path }) => path),
    ['/a', '/b'],
  );
  for (let i = 0; i < MAX_CALLS; i++) keepCall('aid1x', call(`/${i}`));
  assert.equal(callsOf('aid1x').length, MAX_CALLS);
  assert.ok(!callsOf('aid1x').some(({ path }) => path === '/a'));
  assert.deepEqual(callsOf('aid1y'), []);
});
