/** Text for people whose lines depend on how much room there is. */

/** Fewest columns that anything is laid out for. */
const MIN_ROOM = 30;

export class Laid {
  readonly #lay: (room: number) => string;

  /** @param lay the text within so many columns; infinitely many where nobody knows */
  constructor(lay: (room: number) => string) {
    this.#lay = lay;
  }

  /** Its lines, within so many columns where that can be. */
  within(room: number): string {
    return this.#lay(Math.max(MIN_ROOM, room));
  }

  /** As where there is all the room in the world: in a pipe. */
  toString(): string {
    return this.#lay(Number.POSITIVE_INFINITY);
  }
}

/** What a command says to people: a text, what is laid out, or several of them below each other. */
export type Shape = string | Laid | readonly Shape[];

/** The text of a shape within so many columns. */
export function laidOut(shape: Shape, room: number): string {
  if (typeof shape === 'string') return shape;
  return shape instanceof Laid ? shape.within(room) : shape.map((one) => laidOut(one, room)).join('\n');
}

/** Puts pieces side by side into lines of so many columns. @param between what stands between two of them */
export function filled(pieces: readonly string[], room: number, between: string, columns: (text: string) => number) {
  const lines: string[] = [];
  for (const piece of pieces) {
    const last = lines.at(-1);
    const longer = `${last ?? ''}${between}${piece}`;
    if (last === undefined || columns(longer) > room) lines.push(piece);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
