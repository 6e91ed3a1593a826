import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wireRequest } from '../../panel/src/lib/request.ts';

test('input of a GET that is not in the path becomes the query', () => {
  assert.deepEqual(wireRequest('GET /agents/{aid}', { aid: 'a/b', limit: 2, cursor: undefined }), {
    method: 'GET',
    path: '/agents/a%2Fb?limit=2',
    body: null,
  });
  assert.equal(wireRequest('GET /status', {}).path, '/status');
});

test('input of a DELETE that is not in the path becomes the query, with an empty body', () => {
  assert.deepEqual(wireRequest('DELETE /mcp/hub/sources/{aid}', { aid: 'a', local_aid: 'b' }), {
    method: 'DELETE',
    path: '/mcp/hub/sources/a?local_aid=b',
    body: '{}',
  });
});

test('the body of a write has what the path has not, and its own member of the same name', () => {
  assert.deepEqual(wireRequest('POST /agents/{aid}/acl/deny', { aid: 'me', body_aid: 'you', body_of: 1 }), {
    method: 'POST',
    path: '/agents/me/acl/deny',
    body: '{"aid":"you","body_of":1}',
  });
});

test('a part of a path that would lead elsewhere is refused', () => {
  for (const aid of ['.', '..', '', undefined])
    assert.throws(() => wireRequest('GET /agents/{aid}', { aid }), TypeError);
});
