/** Text whose line breaks depend on the width of the terminal. */

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

/** Output of a command: a text, a layout, or several below each other. */
export type OutputText = string | WrappedText | readonly OutputText[];

/** Renders output for a width. */
export function renderText(shape: OutputText, room: number): string {
  if (typeof shape === 'string') return shape;
  return shape instanceof WrappedText ? shape.within(room) : shape.map((one) => renderText(one, room)).join('\n');
}

/** Joins pieces into lines of a given width. @param between separator of two pieces */
export function joinWrapped(
  pieces: readonly string[],
  room: number,
  between: string,
  columns: (text: string) => number,
) {
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    const longer = `${last ?? ''}${between}${piece}`;
    if (last === undefined || columns(longer) > room) lines.push(piece);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
