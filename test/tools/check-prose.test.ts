import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hitsIn, positionOf, sentencesIn } from '../../tools/prose/check.ts';
import { areaOf, passagesOf, proseFiles } from '../../tools/prose/files.ts';
import { PassageBuilder, type PassageKind } from '../../tools/prose/passage.ts';
import { RULES } from '../../tools/prose/rules.ts';
import { loadSpeller } from '../../tools/prose/spelling.ts';

interface Example {
  readonly rule: string;
  readonly isGood: boolean;
  readonly sentence: string;
}

function examples(): Example[] {
  const lines = readFileSync(new URL('prose-examples.txt', import.meta.url), 'utf8').split('\n');
  let rule = '';
  return lines.flatMap((line) => {
    if (/^[a-z]/.test(line)) rule = line;
    return /^[-+] /.test(line) ? [{ rule, isGood: line.startsWith('+'), sentence: line.slice(2) }] : [];
  });
}

function rulesHit(sentence: string, kind: PassageKind): string[] {
  const passages = new PassageBuilder().add(sentence, 0).build(kind);
  return RULES.filter(({ kinds }) => kinds?.includes(kind) !== false)
    .filter(({ pattern }) => passages.some(({ text }) => text.search(pattern) >= 0))
    .map(({ name }) => name);
}

test('each rule finds its bad examples and lets its good ones pass', () => {
  const all = examples();
  for (const { name } of RULES)
    for (const isGood of [true, false])
      assert.ok(
        all.some((example) => example.rule === name && example.isGood === isGood),
        `${name} lacks an example`,
      );
  for (const { rule, isGood, sentence } of all)
    assert.equal(rulesHit(sentence, 'comment').includes(rule), !isGood, `${rule}: ${sentence}`);
});

test('good examples are clean by every rule', () => {
  for (const { sentence } of examples().filter(({ isGood }) => isGood))
    assert.deepEqual(rulesHit(sentence, 'text'), [], sentence);
});

function texts(path: string, source: string): string[] {
  return passagesOf(path, source).map(({ text }) => text);
}

test('reads paragraphs, items, headings and cells of Markdown, without code, targets and comments', () => {
  const page = [
    '# Title of `it`',
    '',
    'One [link](https://example.com/nobody) and',
    '**two** lines.<!-- nobody -->',
    '',
    '- an item',
    '  of two lines',
    '- `svc serve`',
    '',
    '| a cell | `a|b` here |',
    '|---|---|',
    '',
    '```sh',
    'nobody',
    '```',
    '> quoted <b>text</b>',
  ].join('\n');
  assert.deepEqual(texts('docs/page.md', page), [
    'Title of ¤',
    'One link and two lines.',
    'an item of two lines',
    'a cell',
    '¤ here',
    'quoted text',
  ]);
});

test('a sentence in a code span counts as prose, a command does not', () => {
  assert.deepEqual(texts('docs/page.md', 'See `the node that no client uses` and `svc send file peer room`.'), [
    'See the node that no client uses and ¤.',
  ]);
});

test('reads comments and messages of sources, joined texts as one, and no code', () => {
  const source = [
    "import { a } from './a file of words.ts';",
    '// One comment',
    '// of two lines.',
    '/** First paragraph with `code`.',
    ' *',
    ' * Second paragraph. */',
    "const message = 'The port ' + port + ' is in use';",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source of a template
    'const text = `Stop it with ${command}, or wait`;',
    "const sql = 'SELECT key FROM entries where key';",
    "const short = 'no message';",
    "const quoted = 'it can\\'t be read';",
    '// biome-ignore lint: whatever the reason is',
  ].join('\n');
  assert.deepEqual(texts('src/a.ts', source), [
    'One comment of two lines.',
    'First paragraph with ¤.',
    'Second paragraph.',
    'The port ¤ is in use',
    'Stop it with ¤, or wait',
    "it can't be read",
  ]);
});

test('reads the text of components, but no class names, and every English word of the panel', () => {
  const source = 'const a = <p class="row of wide cells">No agents <b>yet</b></p>;';
  assert.deepEqual(texts('panel/src/a.tsx', source), ['No agents', 'yet']);
  assert.deepEqual(texts('panel/src/words/en.ts', "export const en = { 'a.b': 'Nobody' };"), ['Nobody']);
});

test('names the line and column of a hit', () => {
  const source = 'const a = 1;\n/**\n * A socket that\n * nobody reads.\n */\n';
  const [hit, ...more] = passagesOf('src/a.ts', source).flatMap(hitsIn);
  assert.deepEqual(more, []);
  assert.equal(hit?.rule.name, 'nobody');
  assert.equal(positionOf(source, hit?.offset ?? 0), '4:4');
});

test('counts the words of sentences in paragraphs only', () => {
  const passages = passagesOf('docs/a.md', '# A heading\n\nOne two three. Four five\nsix seven!\n\n| a cell |\n');
  assert.deepEqual(sentencesIn(passages), { sentences: 2, words: 7 });
});

test('groups files by area and omits translations', () => {
  assert.equal(areaOf('src/surfaces/cli/commands/call.ts'), 'src/surfaces/cli');
  assert.equal(areaOf('src/foundation/ids.ts'), 'src/foundation');
  assert.equal(areaOf('docs/guides/file.md'), 'docs');
  const words = proseFiles(['panel/src/words']);
  assert.ok(words.includes('panel/src/words/en.ts') && !words.includes('panel/src/words/de.ts'));
});

test('the command fails for a folder without files', () => {
  const { status, stderr } = spawnSync(process.execPath, ['tools/check-prose.ts', 'no/folder'], { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /No checked files at no\/folder/);
});

test('the spell checker knows English and the words of the project, and no others', async () => {
  const speller = await loadSpeller(['svcd']);
  const misspelled = (text: string) =>
    new PassageBuilder()
      .add(text, 0)
      .build('text')
      .flatMap(speller.misspelled)
      .map(({ word }) => word);
  assert.deepEqual(misspelled("The daemon of svcd doesn't resolve peers' hostnames."), []);
  assert.deepEqual(misspelled('It recieves a mesage from camelCaseName at ./no/wrods/file.ts.'), [
    'recieves',
    'mesage',
  ]);
  assert.ok(speller.suggestions('recieves').includes('receives'));
});
