/**
 * Finds misspelled words in pages, comments and messages; `npm run -s check:spelling -- src/surfaces/cli` checks
 * some files or folders. Words of the project are listed in tools/prose/dictionary.txt.
 */
import { positionOf } from './prose/check.ts';
import { proseFiles, readProse } from './prose/files.ts';
import { loadSpeller } from './prose/spelling.ts';

/** Strings in tests are often misspelled on purpose, or of another language. */
const TEST = /^test\//;

const paths = process.argv.slice(2);
const files = proseFiles(paths);
if (files.length === 0)
  throw new Error(`No checked files at ${paths.join(', ')}. Name files or folders of this repository.`);
const speller = await loadSpeller();
let count = 0;
for (const path of files) {
  const { text, passages } = readProse(path);
  const checked = passages.filter(({ kind }) => kind !== 'message' || !TEST.test(path));
  for (const { word, offset } of checked.flatMap(speller.misspelled)) {
    count++;
    console.log(`${path}:${positionOf(text, offset)} ${word} → ${speller.suggestions(word).join(', ')}`);
  }
}
if (count > 0) {
  console.log(`${count} unknown words. Correct them, or add terms to tools/prose/dictionary.txt.`);
  process.exitCode = 1;
} else console.log(`spelling: ${files.length} files`);
