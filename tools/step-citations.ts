/** Comments that cite a step or a section of a protocol page (`protocol-links.md, step 4`) that the page does not have. */
import { globSync, readFileSync } from 'node:fs';

const CITATION = /(protocol(?:-\w+)?\.md), (?:steps? (\d+)(?: (?:to|and) (\d+))?|"([^"]+)")/g;

/** Wrong citations of one source file. `read` returns the text of a page, or null if it does not exist. */
export function wrongCitations(source: string, read: (page: string) => string | null): string[] {
  // A citation may continue on the next line of a comment.
  const text = source.replaceAll(/\n\s*(?:\*|\/\/) /g, ' ');
  return [...text.matchAll(CITATION)].flatMap(([citation, page = '', first, last, heading]) => {
    const body = read(page);
    if (body === null) return [`${citation}: there is no docs/${page}`];
    if (heading !== undefined) {
      const headings = [...body.matchAll(/^#+ (.*)$/gm)].map(([, name]) => name);
      return headings.includes(heading) ? [] : [`${citation}: the page has no such heading`];
    }
    const steps = new Set([...body.matchAll(/^(\d+)\. /gm)].map(([, number]) => number));
    return [first, last].some((step) => step !== undefined && !steps.has(step))
      ? [`${citation}: the page has no such step`]
      : [];
  });
}

function readPage(page: string): string | null {
  try {
    return readFileSync(`docs/${page}`, 'utf8');
  } catch {
    return null;
  }
}

/** Each wrong citation of the sources, with its file. */
export function wrongStepCitations(): string[] {
  return globSync('src/**/*.ts').flatMap((path) =>
    wrongCitations(readFileSync(path, 'utf8'), readPage).map((wrong) => `${path}: ${wrong}`),
  );
}
