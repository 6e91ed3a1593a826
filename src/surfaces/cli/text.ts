/**
 * Text for a terminal. What other agents wrote is shown, never obeyed: control characters, which
 * could move the cursor or fake output, and the invisible ones that reorder or hide text (Unicode
 * bidi controls, zero-width characters) are written as escapes.
 */
import { escapeUnsafe, UNSAFE } from '../../foundation/log-text.ts';
import { columns } from './columns.ts';

function escapeCharacter(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/** One line of foreign text, safe to print. */
export function safeLine(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Foreign text of several lines, safe to print: line breaks and tabs stay. */
export function safeText(text: string): string {
  return text.replace(UNSAFE, (c) => (c === '\n' || c === '\t' ? c : escapeCharacter(c)));
}

/** JSON that is safe to print and means the same: what is unsafe stands escaped, line breaks between members stay. */
export function safeJson(value: unknown, indent = 0): string {
  const lines = JSON.stringify(value, null, indent).split('\n');
  return lines.map(escapeUnsafe).join('\n');
}

/** What can be shown in one place; nothing is shown of null and undefined. */
type Cell = string | number | boolean | null | undefined;

function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - columns(text)));
}

/** Columns of a table, padded; cells are made safe here. @param none what stands for a table without rows */
export function formatTable(head: readonly string[], rows: readonly (readonly Cell[])[], none?: string): string {
  if (rows.length === 0 && none !== undefined) return none;
  const cells = [head, ...rows.map((row) => row.map((cell) => safeLine(String(cell ?? ''))))];
  const widths = head.map((_, i) => Math.max(...cells.map((row) => columns(row[i] ?? ''))));
  const lines = cells.map((row) => row.map((cell, i) => padded(cell, widths[i] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** `name: value` lines, values aligned and made safe; undefined ones are left out. */
export function formatFields(fields: Readonly<Record<string, Cell>>): string {
  const shown = Object.entries(fields).filter(([, value]) => (value ?? '') !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${`${name}:`.padEnd(width + 2)}${safeLine(String(value))}`).join('\n');
}

/** `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** A time as a person says it: `3 min ago`, `in 20 s`. */
export function relativeTime(iso: string, now: number): string {
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  const size = Math.abs(seconds);
  const words =
    size < 60
      ? `${size} s`
      : size < 3600
        ? `${Math.round(size / 60)} min`
        : size < 172_800
          ? `${Math.round(size / 3600)} h`
          : `${Math.round(size / 86_400)} days`;
  return seconds >= 0 ? `${words} ago` : `in ${words}`;
}
