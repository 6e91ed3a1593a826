/**
 * Text for a terminal. Text of other agents is shown but cannot control the terminal: control characters and invisible
 * characters (Unicode bidi controls, zero-width characters) are escaped.
 */
import { escapeUnsafe, UNSAFE } from '../../foundation/display-text.ts';

// Text whose line breaks depend on the width of the terminal.

/** Smallest width for layouts, columns. */
const MIN_WIDTH = 30;

export class WrappedText {
  readonly #render: (width: number) => string;

  /** @param render renders the text for a width; infinity if unknown */
  constructor(render: (width: number) => string) {
    this.#render = render;
  }

  /** The text for a width, as far as possible. */
  within(room: number): string {
    return this.#render(Math.max(MIN_WIDTH, room));
  }

  /** The text for a pipe, whose width is not limited. */
  toString(): string {
    return this.#render(Number.POSITIVE_INFINITY);
  }
}

/** A word of a command line that the user may type, quoted for a shell if necessary. Labels can contain blanks. */
export function commandWord(text: string): string {
  return /^[\p{L}\p{N}@%+=:,./_-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Output of a command: a text, a layout, or several below each other. */
export type OutputText = string | WrappedText | readonly OutputText[];

/** Renders output for a width. */
export function renderText(shape: OutputText, room: number): string {
  if (typeof shape === 'string') return shape;
  return shape instanceof WrappedText ? shape.within(room) : shape.map((one) => renderText(one, room)).join('\n');
}

/** Joins pieces into lines of a given width. @param between separator of two pieces */
function joinWrapped(pieces: readonly string[], room: number, between: string, columns: (text: string) => number) {
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    const longer = `${last ?? ''}${between}${piece}`;
    if (last === undefined || columns(longer) > room) lines.push(piece);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

// Display width of text in terminal columns.

/** Patterns for text that is not ASCII. They take 50 ms to compile, so only such text loads them. */
interface Script {
  readonly clusters: Intl.Segmenter;
  readonly visible: RegExp;
  readonly wide: RegExp;
  readonly picture: RegExp;
}

/** Longest grapheme cluster that is tested as an emoji, in UTF-16 units. Real ones are shorter. */
const MAX_PICTURE_UNITS = 50;

let script: Script | undefined;

function theScript(): Script {
  script ??= {
    clusters: new Intl.Segmenter(),
    visible:
      /[^\p{Default_Ignorable_Code_Point}\p{Control}\p{Format}\p{Nonspacing_Mark}\p{Enclosing_Mark}\p{Surrogate}]/v,
    // Wide and full-width characters (Unicode annex 11) by script: East Asian scripts, their punctuation, emoji.
    wide: /[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{scx=Hangul}\p{scx=Yi}\p{scx=Tangut}\p{scx=Nushu}\p{scx=Khitan_Small_Script}\p{Emoji_Presentation}\u2329\u232A\u2630-\u2637\u268A-\u268F\u2E80-\u303E\u3190-\uA4CF\uFE10-\uFE19\uFE30-\uFE6B\uFF01-\uFF60\uFFE0-\uFFE6\u{1D300}-\u{1D376}\u{1F200}-\u{1F265}]--[\0-\u10FF\u1160-\u11FF\u321F\u3248-\u324F\uA700-\uA707\uD7B0-\uD7FB\uFF61-\uFFDC\uFFE8-\uFFEE]]/v,
    picture: /^(?:\p{RGI_Emoji}|[\d#*]\u20E3|.*\u200D.*\p{Extended_Pictographic}.*)$/v,
  };
  return script;
}

/** Width of one line in columns: two for most East Asian characters and emoji, zero for invisible characters. */
export function textWidth(text: string): number {
  // The ellipsis that shortens IDs is one column wide, and lists contain many ellipses.
  if (/^[ -~…]*$/.test(text)) return text.length;
  const { clusters, visible, wide, picture } = theScript();
  let sum = 0;
  for (const { segment } of clusters.segment(text)) {
    const [first] = visible.exec(segment) ?? [];
    if (first === undefined) continue;
    const isPicture = segment.length <= MAX_PICTURE_UNITS && picture.test(segment);
    sum += isPicture || wide.test(first) ? 2 : 1;
  }
  return sum;
}

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** Makes one line of foreign text safe to print. */
export function safeLine(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Makes several lines of foreign text safe to print. Line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(UNSAFE, (c) => (c === '\n' || c === '\t' ? c : escapeCharacter(c)));
}

/**
 * JSON that is safe to print and has the same meaning: unsafe characters are escaped, line breaks between members stay.
 */
export function safeJson(value: unknown, indent = 0): string {
  const lines = JSON.stringify(value, null, indent).split('\n');
  return lines.map(escapeUnsafe).join('\n');
}

/** The content of a cell. Null and undefined are empty. */
export type Cell = string | number | boolean | null | undefined;

function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

/** Rows as aligned columns. */
function formatColumns(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const cells = [head, ...rows];
  const widths = head.map((_, i) => Math.max(...cells.map((row) => textWidth(row[i] ?? ''))));
  return cells.map((row) =>
    row
      .map((cell, i) => padded(cell, widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** A row for narrow terminals: its first cell, then the other cells on labeled lines. */
function formatLabeledLines(head: readonly string[], [first = '', ...others]: readonly string[], room: number): string {
  const lines = others.flatMap((cell, i) => {
    const name = head[i + 1]?.toLowerCase() ?? '';
    return cell === '' || cell === '-' ? [] : [name === '' ? cell : `${name}: ${cell}`];
  });
  return [first, ...joinWrapped(lines, room - 2, '  ', textWidth).map((line) => `  ${line}`)].join('\n');
}

/**
 * Rows as columns, or each as labeled lines if the terminal is too narrow. Cells are made safe.
 * @param none replaces a table without rows
 * @param above an optional line above a row
 */
export function formatTable(
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  none?: string,
  above: (row: number) => string | undefined = () => undefined,
): WrappedText {
  const safe = rows.map((row) => row.map((cell) => safeLine(String(cell ?? ''))));
  return new WrappedText((room) => {
    if (rows.length === 0 && none !== undefined) return none;
    const [title = '', ...lines] = formatColumns(head, safe);
    const fit = [title, ...lines].every((line) => textWidth(line) <= room);
    const shown = fit ? lines : safe.map((row) => formatLabeledLines(head, row, room));
    const all = shown.flatMap((line, i) => [above(i) ?? [], line].flat());
    return (fit ? [title, ...all] : all).join('\n');
  });
}

/** `name: value` lines with aligned, safe values. Lists take several lines. Undefined values are omitted. */
export function formatFields(fields: Readonly<Record<string, Cell | readonly string[]>>): WrappedText {
  const shown = Object.entries(fields).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : (value ?? '') !== '',
  );
  const width = Math.max(0, ...shown.map(([name]) => name.length)) + 2;
  return new WrappedText((room) =>
    shown
      .map(([name, value]) => {
        const texts = Array.isArray(value) ? value : [value];
        const words = texts.map((text) => safeLine(String(text)).split(' '));
        const lines = words.flatMap((some) => joinWrapped(some, room - width, ' ', textWidth));
        return `${`${name}:`.padEnd(width)}${lines.join(`\n${' '.repeat(width)}`)}`;
      })
      .join('\n'),
  );
}
