import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { clientProgram, svcdProgram } from '../../tools/command-tree.ts';
import { manPage, PAGES, roff } from '../../tools/man-doc.ts';
import { commandsOf } from '../support/command-tree.ts';

test('text is escaped for roff', () => {
  assert.equal(roff('a\\b --c'), 'a\\eb \\-\\-c');
  assert.equal(roff(".x\n'y"), "\\&.x\n\\&'y");
  assert.equal(roff('aid1…'), 'aid1\\[u2026]');
});

test('the pages contain every command and option, and npm installs them', async () => {
  const { man } = JSON.parse(readFileSync('package.json', 'utf8')) as { man: string[] };
  assert.deepEqual(
    man,
    PAGES.map(({ file }) => `./${file}`),
  );
  for (const [program, page] of [
    [await clientProgram(), PAGES[0]],
    [svcdProgram(), PAGES[1]],
  ] as const) {
    assert.ok(page);
    const text = manPage(page);
    assert.doesNotMatch(text, /[^\x20-\x7e\n]/);
    const missing = [{ name: '', command: program }, ...commandsOf(program)].flatMap(({ name, command }) => [
      ...(name === '' || text.includes(`.SS "${page.name} ${roff(name)}`) ? [] : [name]),
      ...command.options
        .filter(({ hidden, flags }) => !hidden && !text.includes(`.B ${roff(flags)}\n`))
        .map(({ flags }) => `${name} ${flags}`),
    ]);
    assert.deepEqual(missing, []);
    assert.match(text, /^\.SH NAME\nsvcd? \\- /m);
  }
});
