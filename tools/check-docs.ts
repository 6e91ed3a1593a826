/**
 * Runs every tool that writes a page of docs/ with `--check`. It fails if a page differs from the sources, a link between
 * pages is dead, a page has an unresolved merge, or a comment cites a step that a protocol page does not have. `npm run docs`
 * writes the pages.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { deadLinks, unresolvedMerges } from './dead-links.ts';
import { wrongStepCitations } from './step-citations.ts';

const check = process.argv.includes('--write') ? [] : ['--check'];
const tools = readdirSync(import.meta.dirname).filter((name) => name.endsWith('-doc.ts'));
for (const tool of tools) {
  const { status } = spawnSync(process.execPath, [`${import.meta.dirname}/${tool}`, ...check], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
const dead = deadLinks();
if (dead.length > 0) {
  console.error(`docs: links that lead nowhere\n${dead.map((link) => `  ${link}`).join('\n')}`);
  process.exit(1);
}
const unresolved = unresolvedMerges();
if (unresolved.length > 0) {
  console.error(`docs: pages with an unresolved merge\n${unresolved.map((page) => `  ${page}`).join('\n')}`);
  process.exit(1);
}
const wrong = wrongStepCitations();
if (wrong.length > 0) {
  console.error(`docs: citations of protocol pages to correct\n${wrong.map((citation) => `  ${citation}`).join('\n')}`);
  process.exit(1);
}
console.log(`docs: ${tools.length} generated pages ${check.length > 0 ? 'are up to date' : 'written'}`);
