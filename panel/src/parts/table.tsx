/** A table of which only the rows that are seen are in the page. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { rowsInView, WHOLE_ROWS } from '../lib/window.ts';

export interface Column<R> {
  readonly title: string;
  readonly cell: (row: R) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface TableProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
}

/** Height of a row of a long table, pixels, until one was measured. */
const ROW_PX = 53;

export function Table<R>({ label, rows, columns, keyOf }: TableProps<R>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const height = useRef(ROW_PX);
  const [[from, to], setView] = useState<readonly [number, number]>([0, Math.min(rows.length, WHOLE_ROWS)]);
  useEffect(() => {
    const look = (): void => {
      const { current } = body;
      if (current === null) return;
      const row = current.querySelector('tr:not(.spacer)');
      if (row !== null) height.current = row.getBoundingClientRect().height;
      const [first, behind] = rowsInView(
        rows.length,
        -current.getBoundingClientRect().top,
        innerHeight,
        height.current,
      );
      setView((before) => (before[0] === first && before[1] === behind ? before : [first, behind]));
    };
    look();
    addEventListener('scroll', look, { passive: true });
    addEventListener('resize', look);
    return () => {
      removeEventListener('scroll', look);
      removeEventListener('resize', look);
    };
  }, [rows.length]);
  const end = Math.min(to, rows.length);
  const spacer = (count: number): ComponentChildren =>
    count > 0 && (
      <tr class="spacer" aria-hidden="true">
        <td colSpan={columns.length} height={count * height.current} />
      </tr>
    );
  return (
    <div class="wide">
      <table aria-label={label} aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }, i) => (
              <th key={i} scope="col" class={isNumber === true ? 'num' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {spacer(from)}
          {rows.slice(from, end).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ cell, isNumber }, i) => (
                <td key={i} class={isNumber === true ? 'num' : ''}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {spacer(rows.length - end)}
        </tbody>
      </table>
    </div>
  );
}
