/** The required fields of the kinds of entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEntry } from '../../../src/capabilities/groups/entry.ts';
import { bodyText, isContent, shapeProblem } from '../../../src/capabilities/groups/kinds.ts';
import { vectorBytes } from '../../fuzz/engine/seeds.ts';

test('a kind that is a property of Object is an unknown kind like any other', () => {
  const entries = vectorBytes('group', 'entries.*.entry_hex').map((bytes) => decodeEntry(bytes));
  const message = entries.find(
    ({ kind, parents, proof }) => kind !== 'create' && parents.length > 0 && proof === undefined,
  );
  assert.ok(message);
  for (const kind of ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'not-yet-made'])
    assert.equal(shapeProblem({ ...message, kind }), null, kind);
  assert.equal(shapeProblem({ ...message, kind: 'rekey', body: new Uint8Array(1) }), 'the join secret is malformed');
});

test('content counts as unread; control entries and retractions do not', () => {
  assert.deepEqual(['msg', 'file', 'x-note', 'join', 'rekey', 'retract'].map(isContent), [
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
});

test('a body is text only if it is UTF-8', () => {
  assert.equal(bodyText({}), null);
  assert.equal(bodyText({ body: Buffer.from('\ufeffé') }), '\ufeffé');
  assert.equal(bodyText({ body: Uint8Array.of(0xff) }), null);
});
