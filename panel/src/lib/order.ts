/** The order of a table, as in the address: the name of a column, with `-` in front for descending order. */

export interface Order {
  readonly name: string;
  readonly isDown: boolean;
}

interface Sortable<R> {
  readonly name?: string;
  readonly by?: (row: R) => string | number;
}

export function orderOf(text = ''): Order {
  return text.startsWith('-') ? { name: text.slice(1), isDown: true } : { name: text, isDown: false };
}

/** The next order after a click on a column heading: ascending, descending, unsorted. */
export function nextOrder(order: Order, name: string): string {
  if (order.name !== name) return name;
  return order.isDown ? '' : `-${name}`;
}

/** Sorts rows. They stay unsorted if no column has the name. */
export function sortedBy<R>(
  rows: readonly R[],
  columns: readonly Sortable<R>[],
  { name, isDown }: Order,
): readonly R[] {
  const by = columns.find((column) => column.name === name && name !== '')?.by;
  if (by === undefined) return rows;
  const sign = isDown ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [by(a), by(b)];
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    return sign * order;
  });
}
