import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { aidAt, base64At, checkDistinct, hexBytes } from '../../../src/foundation/moving/document-fields.ts';
import { testAid } from '../../support/agents.ts';

/** For `assert.throws`: the error names the path, the problem, and that nothing was imported. */
function badAt(path: string, problem: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof SvcError);
    assert.equal(error.code, 'bad_file');
    assert.deepEqual(error.details, { in: 'body', path, problem });
    assert.equal(
      error.message,
      `Invalid agent document: ${path} ${problem}. Nothing was imported. Export the agent again.`,
    );
    return true;
  };
}

test('rejects a duplicate name in a list', () => {
  checkDistinct('/tunnels', []);
  checkDistinct('/tunnels', [1, 2, '1']);
  assert.throws(() => checkDistinct('/tunnels', [1, 2, 1]), badAt('/tunnels', 'contains a duplicate'));
  assert.throws(() => checkDistinct('/chat', ['a', 'a']), badAt('/chat', 'contains a duplicate'));
});

test('an AID is read in its canonical text', () => {
  assert.equal(aidAt('/aid', testAid(1).toUpperCase()), testAid(1));
  assert.throws(() => aidAt('/aid', 'aid1'), badAt('/aid', 'is not an AID'));
});

test('base64 is read up to its limit', () => {
  assert.deepEqual(base64At('/x', 'AQID', 3), new Uint8Array([1, 2, 3]));
  for (const text of ['AQIDBA==', 'A', 'AQ*D'])
    assert.throws(() => base64At('/x', text, 3), badAt('/x', 'is not base64, or is too long'), text);
});

test('hex is read', () => {
  assert.deepEqual(hexBytes('00ff'), new Uint8Array([0, 255]));
});
