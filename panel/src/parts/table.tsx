/** A table that renders only its visible rows. If requested, the column headings sort it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { nextOrder, orderOf, sortedBy } from '../lib/order.ts';
import { here, keep } from '../lib/place.ts';
import { rowsInView, WHOLE_ROWS } from '../lib/window.ts';

export interface Column<R> {
  /** Name of the column in the address. Required for sortable columns. */
  readonly name?: string;
  readonly title: string;
  /** The value to sort by. */
  readonly by?: (row: R) => string | number;
  readonly cell: (row: R) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface TableProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly columns: readonly Column<R>[];
  readonly keyOf: (row: R) => string;
}

/** Estimated height of a row, pixels, until a row is measured. */
const ROW_PX = 53;

function Head<R>({ column: { name, title, isNumber, by } }: { readonly column: Column<R> }) {
  // A column of buttons has no heading.
  if (title === '') return <td />;
  const shared = { scope: 'col', class: isNumber === true ? 'num' : '' } as const;
  if (by === undefined || name === undefined) return <th {...shared}>{title}</th>;
  const order = orderOf(here().query['sort']);
  const isChosen = order.name === name;
  const direction = isChosen ? (order.isDown ? 'descending' : 'ascending') : 'none';
  return (
    <th {...shared} aria-sort={direction}>
      <button type="button" onClick={() => keep({ sort: nextOrder(order, name) })}>
        {title}
        <span aria-hidden="true">{isChosen ? (order.isDown ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}

export function Table<R>({ label, rows: given, columns, keyOf }: TableProps<R>) {
  const rows = sortedBy(given, columns, orderOf(here().query['sort']));
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
            {columns.map((column, i) => (
              <Head key={i} column={column} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {spacer(from)}
          {rows.slice(from, end).map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber }, i) => (
                <td
                  key={i}
                  class={isNumber === true ? 'num' : ''}
                  {...(i > 0 && title !== '' ? { 'data-title': title } : {})}
                >
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
