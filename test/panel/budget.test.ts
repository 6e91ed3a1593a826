import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { buildPanel } from '../../tools/build-panel.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** The languages of the panel. */
const LANGUAGES = readdirSync('panel/src/words').flatMap((file) => /^([a-z]{2})\.ts$/.exec(file)?.[1] ?? []);
/** Scripts with the texts of a language. The main script contains the English texts of the first view. */
const LANGUAGE = new RegExp(
  `^(${LANGUAGES.join('|')})(?:-agent|-node|-talk|-network|-settings|-doctor)?-[\\w-]{8}\\.js$`,
);
/** Scripts that load with some pages only. */
const RARE = /^[a-z]{2}-(?:node|talk|network|settings|doctor)-/;

/** The gzipped size of a file, bytes. */
function gzipped(file: string): number {
  return gzipSync(readFileSync(file), { level: 9 }).length;
}

test('the panel stays within its size budgets, and its page names only existing files', async (t) => {
  const directory = temporaryDirectory(t);
  await buildPanel(directory);
  const files = readdirSync(directory);
  const sizes = new Map(files.map((file) => [file, gzipped(join(directory, file))]));
  const sum = (names: readonly string[]): number => names.reduce((all, name) => all + (sizes.get(name) ?? 0), 0);
  const scripts = files.filter((file) => file.endsWith('.js'));
  const [main = ''] = scripts.filter((file) => file.startsWith('main-'));
  // Static imports load before the first view.
  const first = new Set([main]);
  for (const name of first)
    for (const [, next = ''] of readFileSync(join(directory, name), 'utf8').matchAll(/(?:from|import)"\.\/([^"]+)"/g))
      first.add(next);
  assert.ok(sum([...first]) <= 30_000, `first view: ${sum([...first])} bytes`);
  assert.ok(first.size + 2 <= 6, `requests of the first view: ${first.size + 2}`);
  const languages = Map.groupBy(scripts, (name) => LANGUAGE.exec(name)?.[1] ?? '');
  const [texts, others] = [[...languages].filter(([code]) => code !== ''), languages.get('') ?? []];
  assert.equal(texts.length, LANGUAGES.length);
  for (const [code, names] of texts) {
    const [rare, common] = [names.filter((name) => RARE.test(name)), names.filter((name) => !RARE.test(name))];
    assert.ok(sum(common) <= 10_000, `${code}: ${sum(common)} bytes`);
    assert.equal(rare.length, code === 'en' ? 3 : 5, code);
    for (const name of rare) assert.ok(sum([name]) <= 5_000, `${name}: ${sum([name])} bytes`);
  }
  assert.ok(sum(others) <= 110_000, `all scripts without languages: ${sum(others)} bytes`);
  assert.ok(sum(files.filter((file) => file.endsWith('.css'))) <= 9_000);
  const manifest: { files: Record<string, string> } = JSON.parse(
    readFileSync(join(directory, 'manifest.json'), 'utf8'),
  );
  assert.deepEqual(Object.keys(manifest.files).sort(), files.filter((file) => /\.(js|css)$/.test(file)).sort());
  const page = readFileSync(join(directory, 'index.html'), 'utf8');
  for (const [, name = ''] of page.matchAll(/"\/panel\/([^"]+)"/g)) assert.ok(name in manifest.files, name);
  assert.doesNotMatch(page, /style=|<script>|https?:/);
});
