/**
 * Text for a terminal. Text of other agents is shown but cannot control the terminal: control characters and invisible
 * characters (Unicode bidi controls, zero-width characters) are escaped.
 */
import { escapeUnsafe, UNSAFE } from '../../foundation/display-text.ts';
import { textWidth } from './text-width.ts';
import { joinWrapped, WrappedText } from './wrapped-text.ts';

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
type Cell = string | number | boolean | null | undefined;

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
  const said = others.flatMap((cell, i) => {
    const name = head[i + 1]?.toLowerCase() ?? '';
    return cell === '' || cell === '-' ? [] : [name === '' ? cell : `${name}: ${cell}`];
  });
  return [first, ...joinWrapped(said, room - 2, '  ', textWidth).map((line) => `  ${line}`)].join('\n');
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
