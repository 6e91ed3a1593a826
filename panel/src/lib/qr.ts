/**
 * QR codes (ISO/IEC 18004) of short texts: bytes, error correction M, versions 1 to 6 and one mask, which every reader
 * takes. That is room for an AID, or for a master key in hex.
 */

/** Codewords in all, those of error correction in a block, and blocks, for each version at level M. */
const VERSIONS = [
  [26, 10, 1],
  [44, 16, 1],
  [70, 26, 1],
  [100, 18, 2],
  [134, 24, 2],
  [172, 16, 4],
] as const;
/** Level M and mask 0 as the fifteen bits that say so. */
const FORMAT = 0b101010000010010;
const PADS = [0xec, 0x11] as const;
/** Of the field of 256 elements that Reed-Solomon codes of QR are in. */
const FIELD = 0x11d;

function times(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >>> 7) * FIELD) ^ (((b >>> bit) & 1) * a);
  return product;
}

/** The factors of the generator of so many codewords, the highest one left out. */
function generator(degree: number): readonly number[] {
  let factors: readonly number[] = [1];
  for (let i = 0, root = 1; i < degree; i++, root = times(root, 2))
    factors = [...factors, 0].map((factor, at) => factor ^ times(factors[at - 1] ?? 0, root));
  return factors.slice(1);
}

function corrections(data: readonly number[], degree: number): readonly number[] {
  const factors = generator(degree);
  let rest: readonly number[] = factors.map(() => 0);
  for (const byte of data) {
    const lead = byte ^ (rest[0] ?? 0);
    rest = factors.map((factor, at) => (rest[at + 1] ?? 0) ^ times(factor, lead));
  }
  return rest;
}

/** The data of a version: the text behind its kind and length, filled up. */
function dataOf(bytes: Uint8Array, room: number): readonly number[] {
  const bits = [0b0100, bytes.length >>> 4, bytes.length & 15];
  for (const byte of bytes) bits.push(byte >>> 4, byte & 15);
  bits.push(0);
  const data: number[] = [];
  for (let i = 0; i < bits.length; i += 2) data.push(((bits[i] ?? 0) << 4) | (bits[i + 1] ?? 0));
  for (let i = 0; data.length < room; i++) data.push(PADS[i % 2] ?? 0);
  return data;
}

/** The codewords of all blocks in turns, as they stand in the picture. */
function inTurns(data: readonly number[], degree: number, count: number): readonly number[] {
  const size = data.length / count;
  const blocks = Array.from({ length: count }, (_, i) => data.slice(i * size, (i + 1) * size));
  const checks = blocks.map((block) => corrections(block, degree));
  const turn = (parts: readonly (readonly number[])[], length: number): readonly number[] =>
    Array.from({ length }, (_, i) => parts.map((part) => part[i] ?? 0)).flat();
  return [...turn(blocks, size), ...turn(checks, degree)];
}

/** Modules that are there whatever the text is; null where the text goes. */
function frame(version: number): (boolean | null)[][] {
  const size = 17 + 4 * version;
  const grid: (boolean | null)[][] = Array.from({ length: size }, () => Array.from({ length: size }, () => null));
  const set = (x: number, y: number, isDark: boolean): void => {
    const row = grid[y];
    if (row !== undefined && x >= 0 && x < size) row[x] = isDark;
  };
  const square = (x: number, y: number, reach: number, light: readonly number[]): void => {
    for (let dx = -reach; dx <= reach; dx++)
      for (let dy = -reach; dy <= reach; dy++)
        set(x + dx, y + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    square(x, y, 4, [2, 4]);
  if (version > 1) square(size - 7, size - 7, 2, [1]);
  for (let i = 0; i < 15; i++) {
    const isDark = ((FORMAT >>> i) & 1) === 1;
    const along = i < 6 ? i : i < 8 ? i + 1 : -1;
    if (along >= 0) set(8, along, isDark);
    else set(i === 8 ? 7 : 14 - i, 8, isDark);
    if (i < 8) set(size - 1 - i, 8, isDark);
    else set(8, size - 15 + i, isDark);
  }
  set(8, size - 8, true);
  return grid;
}

/**
 * The modules of a text, row by row; true is dark.
 * @throws RangeError where it is longer than 106 bytes of UTF-8
 */
export function qrOf(text: string): readonly (readonly boolean[])[] {
  const bytes = new TextEncoder().encode(text);
  const fits = ([all, degree, count]: (typeof VERSIONS)[number]): boolean => bytes.length + 2 <= all - degree * count;
  const version = VERSIONS.findIndex(fits) + 1;
  const kind = VERSIONS[version - 1];
  if (kind === undefined) throw new RangeError('the text is too long for a small QR code');
  const [all, degree, count] = kind;
  const words = inTurns(dataOf(bytes, all - degree * count), degree, count);
  const grid = frame(version);
  const size = grid.length;
  let at = 0;
  // Two columns at a time from the right, up and down in turns; the sixth belongs to the timing.
  for (let right = size - 1, goesUp = true; right > 0; right -= 2, goesUp = !goesUp) {
    if (right === 6) right = 5;
    for (let i = 0; i < size; i++)
      for (const x of [right, right - 1]) {
        const y = goesUp ? size - 1 - i : i;
        const row = grid[y];
        if (row === undefined || row[x] !== null) continue;
        const bit = ((words[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1;
        at++;
        row[x] = (bit === 1) !== ((x + y) % 2 === 0);
      }
  }
  return grid.map((row) => row.map((isDark) => isDark === true));
}
