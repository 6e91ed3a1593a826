/** Finds links between pages to missing files or headings, and unresolved merges. External links are not checked. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

const PAGES = ['*.md', 'docs/**/*.md'];

/** The anchor of a heading, as code hosts make it. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(page: string): Set<string> {
  return new Set([...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading)));
}

/** Each dead link, as `page: link`. */
export function deadLinks(): string[] {
  const dead: string[] = [];
  for (const page of globSync(PAGES)) {
    for (const [, link = ''] of readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^\w+:/.test(link)) continue;
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : normalize(join(dirname(page), path));
      const exists =
        existsSync(target) && (anchor === undefined || !target.endsWith('.md') || anchorsOf(target).has(anchor));
      if (!exists) dead.push(`${page}: ${link}`);
    }
  }
  return dead;
}

/** The pages with an unresolved merge. */
export function unresolvedMerges(): string[] {
  return globSync(PAGES).filter((page) => /^(?:<{7}|>{7}) /m.test(readFileSync(page, 'utf8')));
}
