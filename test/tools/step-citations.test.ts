import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wrongCitations } from '../../tools/step-citations.ts';

const PAGE = '# Links\n\n1. Dial.\n2. Say hello.\n\n## Status\n\n3. Answer.\n';

function wrong(source: string): string[] {
  return wrongCitations(source, (page) => (page === 'protocol-links.md' ? PAGE : null));
}

test('citations of steps and headings that a page has are right', () => {
  assert.deepEqual(wrong('// protocol-links.md, step 3\n// docs/protocol-links.md, "Status"'), []);
  assert.deepEqual(wrong('/**\n * Format: docs/protocol-links.md, steps\n * 1 to 3. More.\n */'), []);
});

test('a missing page, step or heading is reported', () => {
  assert.deepEqual(wrong('// protocol-links.md, step 4'), ['protocol-links.md, step 4: the page has no such step']);
  assert.equal(wrong('// protocol-links.md, steps 2 and 9').length, 1);
  assert.equal(wrong('/**\n * Format: docs/protocol-links.md,\n * steps 3 to 5.\n */').length, 1);
  assert.equal(wrong('// protocol-links.md, "Replies"').length, 1);
  assert.equal(wrong('// protocol-rooms.md, step 1').length, 1);
});
