/** The prose of Markdown and manual pages: paragraphs, list items, headings and table cells; no code. */
import { addInline, NOTHING, type Passage, PassageBuilder, type PassageKind } from './passage.ts';

const FENCE = /^\s*(?:>\s*)*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})/;
const HEADING = /^#{1,6}\s+/;
const ITEM = /^\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+/;
const QUOTE = /^\s*>\s?/;
const ROW = /^\s*\|/;
const DIVIDER = /^\s*\|?[\s:|-]+\|?\s*$/;
const DEFINITION = /^\s*\[[^\]]+\]:\s/;

interface Line {
  readonly text: string;
  readonly offset: number;
}

function* linesOf(source: string): Generator<Line> {
  let offset = 0;
  for (const text of source.split('\n')) {
    yield { text, offset };
    offset += text.length + 1;
  }
}

/** Blanks instead of comments, so that offsets stay the same. */
function withoutComments(source: string): string {
  return source.replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ' '));
}

/** Cells of a table row; a bar inside a code span or behind a backslash separates nothing. */
function cellsOf({ text, offset }: Line): Line[] {
  return [...text.matchAll(/(?:\\.|`[^`]*`|[^|\\`]|`)+/g)].map((cell) => ({
    text: cell[0],
    offset: offset + cell.index,
  }));
}

export function markdownPassages(source: string): Passage[] {
  const passages: Passage[] = [];
  let block: Line[] = [];
  let fence: string | undefined;
  const flush = (kind: PassageKind = 'text'): void => {
    const [first] = block;
    if (first === undefined) return;
    const builder = new PassageBuilder();
    addInline(builder, joined(source, block), first.offset);
    passages.push(...builder.build(kind));
    block = [];
  };
  for (const line of linesOf(withoutComments(source))) {
    const mark = FENCE.exec(line.text)?.[1];
    if (fence !== undefined) {
      if (mark?.startsWith(fence) && line.text.trim().endsWith(mark)) fence = undefined;
      continue;
    }
    if (mark !== undefined) {
      flush();
      fence = mark;
    } else if (HEADING.test(line.text)) {
      flush();
      block = [without(line, HEADING)];
      flush('heading');
    } else if (ROW.test(line.text)) {
      flush();
      if (DIVIDER.test(line.text)) continue;
      for (const cell of cellsOf(line)) {
        block = [cell];
        flush('cell');
      }
    } else if (line.text.trim() === '' || DEFINITION.test(line.text)) {
      flush();
    } else if (ITEM.test(line.text)) {
      flush();
      block = [without(line, ITEM)];
    } else {
      block.push(QUOTE.test(line.text) ? without(line, QUOTE) : line);
    }
  }
  flush();
  return passages;
}

function without(line: Line, mark: RegExp): Line {
  const length = mark.exec(line.text)?.[0].length ?? 0;
  return { text: line.text.slice(length), offset: line.offset + length };
}

/** The text from the first line to the last with blanks for what was cut off, so that offsets hold. */
function joined(source: string, block: readonly Line[]): string {
  const start = block[0]?.offset ?? 0;
  let text = '';
  for (const line of block) text = text.padEnd(line.offset - start) + line.text;
  return text.slice(0, source.length - start);
}

/** Roff requests, which fill a line, and escapes. */
const REQUEST = /^\.\\?"?.*$/;
const ESCAPE = /\\(?:f[BIRP]|&|-|\(\w\w|e)/g;

/** Manual pages are written by a tool: paragraphs are lines, everything else is a request. */
export function manualPassages(source: string): Passage[] {
  return [...linesOf(source)].flatMap(({ text, offset }) => {
    if (REQUEST.test(text) || !text.includes(' ')) return [];
    const plain = text.replace(ESCAPE, (escape) => (escape === '\\-' ? `${NOTHING}-` : NOTHING.repeat(escape.length)));
    return new PassageBuilder().add(plain, offset).build('text');
  });
}
