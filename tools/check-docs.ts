/**
 * Runs every tool that writes a page of docs/ with `--check`: it fails where a page is not what the
 * sources say, or where a link between pages leads nowhere. Write them anew with `npm run docs`.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { deadLinks } from './dead-links.ts';

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
console.log(`docs: ${tools.length} generated pages ${check.length > 0 ? 'are up to date' : 'written'}`);
