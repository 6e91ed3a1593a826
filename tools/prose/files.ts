/** Which files hold prose, how it is read, and the area that each file counts in. */
import { globSync, readFileSync } from 'node:fs';
import { manualPassages, markdownPassages } from './markdown.ts';
import type { Passage } from './passage.ts';
import { pagePassages, sourcePassages, stylePassages } from './source.ts';

const PAGES = ['*.md', 'docs/**/*.md', 'docs/man/*'];
const SOURCES = [
  '{src,test,tools,bench,sim}/**/*.ts',
  'panel/src/**/*.{ts,tsx}',
  'panel/style/**/*.css',
  'panel/*.html',
];
/** Texts of the panel in other languages, which English rules and dictionaries do not fit. */
const TRANSLATION = /^panel\/src\/words\/(?!en\b)/;
const ENGLISH_WORDS = /^panel\/src\/words\/en\b/;

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Every checked file, or those at or below the paths given. */
export function proseFiles(paths: readonly string[] = []): string[] {
  const folders = paths.map((path) => path.replace(/^\.\//, '').replace(/\/+$/, ''));
  const all = globSync([...PAGES, ...SOURCES], { exclude: ['**/node_modules/**'] }).map((path) =>
    path.replaceAll('\\', '/'),
  );
  return all
    .filter((path) => !TRANSLATION.test(path))
    .filter((path) => folders.length === 0 || folders.some((folder) => isWithin(path, folder)))
    .sort((a, b) => (a < b ? -1 : 1));
}

export function passagesOf(path: string, text: string): Passage[] {
  if (path.endsWith('.md')) return markdownPassages(text);
  if (path.startsWith('docs/man/')) return manualPassages(text);
  if (path.endsWith('.css')) return stylePassages(text);
  if (path.endsWith('.html')) return pagePassages(text);
  return sourcePassages(path, text, { isWordFile: ENGLISH_WORDS.test(path) });
}

export function readProse(path: string): { readonly text: string; readonly passages: readonly Passage[] } {
  const text = readFileSync(path, 'utf8');
  return { text, passages: passagesOf(path, text) };
}

/** Folders of the sources count by their subfolders. */
export function areaOf(path: string): string {
  const [top = '', second, third] = path.split('/');
  if (second === undefined) return top === 'README.md' ? 'README' : 'other pages';
  if (top !== 'src' && top !== 'test') return top;
  if (third === undefined) return top;
  if (top === 'src' && path.split('/').length > 3) return `${top}/${second}/${third}`;
  return `${top}/${second}`;
}
