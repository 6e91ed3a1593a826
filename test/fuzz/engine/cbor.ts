/** Edits of CBOR whose result is valid CBOR, so that decoders do not reject it at the first byte. */
import type { Random } from '../../support/random.ts';
import { EDGES, type Edit, editBytes, join, noise } from './bytes.ts';

/** An item. The children of a map are its keys and values, alternating. */
class Item {
  /** 0 unsigned, 1 negative, 2 bytes, 3 text, 4 array, 5 map, 6 tag, 7 simple and float. */
  major: number;
  /** The argument of the head: the number itself for 0, 1 and 6, the bits for 7. */
  value: bigint;
  bytes: Uint8Array;
  children: Item[];

  constructor(major: number, value = 0n, bytes: Uint8Array = new Uint8Array(), children: Item[] = []) {
    this.major = major;
    this.value = value;
    this.bytes = bytes;
    this.children = children;
  }

  become(other: Item): void {
    this.major = other.major;
    this.value = other.value;
    this.bytes = other.bytes;
    this.children = other.children;
  }
}

const MAX_DEPTH = 24;
const MAX_COPIES = 300;

class Parser {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  whole(): Item | null {
    const item = this.#item(0);
    return item !== null && this.#at === this.#bytes.length ? item : null;
  }

  #take(length: number): Uint8Array | null {
    if (this.#at + length > this.#bytes.length) return null;
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  #item(depth: number): Item | null {
    const first = this.#take(1)?.[0];
    if (first === undefined || depth > MAX_DEPTH) return null;
    const [major, low] = [first >> 5, first & 31];
    const more = low < 24 ? 0 : 2 ** (low - 24);
    const argument = low > 27 ? null : this.#take(more);
    if (argument === null) return null;
    const value = low < 24 ? BigInt(low) : BigInt(`0x${Buffer.from(argument).toString('hex')}`);
    if (major === 7) return new Item(major, value, Uint8Array.of(low));
    if (major < 2) return new Item(major, value);
    if (value > BigInt(this.#bytes.length)) return null;
    if (major < 4) {
      const content = this.#take(Number(value));
      return content === null ? null : new Item(major, 0n, content);
    }
    const count = major === 6 ? 1 : Number(value) * (major === 5 ? 2 : 1);
    const children: Item[] = [];
    for (let i = 0; i < count; i++) {
      const child = this.#item(depth + 1);
      if (child === null) return null;
      children.push(child);
    }
    return new Item(major, value, new Uint8Array(), children);
  }
}

function head(major: number, value: bigint): Uint8Array {
  if (value < 24n) return Uint8Array.of((major << 5) | Number(value));
  const power = value < 256n ? 0 : value < 65_536n ? 1 : value < 2n ** 32n ? 2 : 3;
  const digits = (value & (2n ** 64n - 1n)).toString(16).padStart(2 * 2 ** power, '0');
  return join(Uint8Array.of((major << 5) | (24 + power)), Buffer.from(digits, 'hex'));
}

function encode(item: Item, sorted: boolean): Uint8Array {
  const { major, value, bytes, children } = item;
  if (major === 7) {
    const low = bytes[0] ?? 0;
    const digits = low < 24 ? '' : value.toString(16).padStart(2 * 2 ** (low - 24), '0');
    return join(Uint8Array.of((7 << 5) | low), Buffer.from(digits, 'hex'));
  }
  if (major < 2) return head(major, value);
  if (major < 4) return join(head(major, BigInt(bytes.length)), bytes);
  const parts = children.map((child) => encode(child, sorted));
  if (major === 6) return join(head(6, value), ...parts);
  if (major === 4) return join(head(4, BigInt(parts.length)), ...parts);
  const pairs = Array.from({ length: parts.length >> 1 }, (_, i) => [parts[2 * i], parts[2 * i + 1]]);
  if (sorted) pairs.sort(([a], [b]) => Buffer.compare(a ?? new Uint8Array(), b ?? new Uint8Array()));
  return join(head(5, BigInt(pairs.length)), ...pairs.flat().filter((part) => part !== undefined));
}

function scalar(random: Random): Item {
  switch (random.below(6)) {
    case 0:
      return new Item(1, random.pick(EDGES));
    case 1:
      return new Item(2, 0n, noise(random, random.pick([0, 1, 8, 16, 20, 32, 33, 64, 65, 100])));
    case 2:
      return new Item(3, 0n, new TextEncoder().encode(random.pick(TEXTS)));
    case 3:
      return new Item(7, 0n, Uint8Array.of(random.pick([20, 21, 22, 23])));
    case 4:
      return new Item(7, random.pick(EDGES) & 0xffffn, Uint8Array.of(25));
    default:
      return new Item(0, random.pick(EDGES));
  }
}

/** Texts that careless code interprets. */
const TEXTS = [
  ...['', '__proto__', 'constructor', 'toString', 'a', 'v', 'length', '../../x', 'http://127.0.0.1:1', '[::1]:1'],
  ...['\u0000', '\ufeff', '\u202e', 'e\u0301', '\u{1f600}', '1e999', '-0', 'null', 'x'.repeat(300)],
];

function listOf(item: Item, into: Item[] = []): Item[] {
  into.push(item);
  for (const child of item.children) listOf(child, into);
  return into;
}

function copyOf(item: Item): Item {
  return new Item(item.major, item.value, item.bytes, item.children.map(copyOf));
}

function editChildren(item: Item, random: Random): void {
  const { children } = item;
  const step = item.major === 5 ? 2 : 1;
  const at = step * random.below(children.length / step);
  const some = children.slice(at, at + step);
  switch (random.below(5)) {
    case 0:
      children.splice(at, step);
      return;
    case 1:
      children.splice(at, 0, ...some.map(copyOf));
      return;
    case 2:
      for (let copies = random.below(MAX_COPIES); copies > 0; copies--) children.push(...some.map(copyOf));
      return;
    case 3:
      children.splice(at, 0, ...some.map(() => scalar(random)));
      return;
    default:
      item.children = [...children.slice(at), ...children.slice(0, at)];
  }
}

function editItem(item: Item, all: readonly Item[], random: Random): void {
  const chance = random.next();
  if (chance < 0.15) item.become(scalar(random));
  else if (chance < 0.25) item.become(copyOf(random.pick(all)));
  else if (chance < 0.3) {
    for (let depth = 1 + random.below(MAX_DEPTH); depth > 0; depth--)
      item.become(new Item(4, 0n, new Uint8Array(), [new Item(item.major, item.value, item.bytes, item.children)]));
  } else if (item.major === 0 && random.chance(0.5)) item.value = item.value > 0n ? item.value - 1n : 1n;
  else if (item.major < 2) item.value = random.pick(EDGES);
  else if (item.major === 2) item.bytes = editCbor(item.bytes, random) ?? editBytes(item.bytes, random);
  else if (item.major === 3) item.bytes = editBytes(item.bytes, random);
  else if (item.children.length > 0) editChildren(item, random);
  else item.children.push(...Array.from({ length: item.major === 5 ? 2 : 1 }, () => scalar(random)));
}

/** Edits a part of the input; null if the input is no CBOR. */
export function editCbor(input: Uint8Array, random: Random): Uint8Array | null {
  const root = input.length < 2 ? null : new Parser(input).whole();
  if (root === null) return null;
  const all = listOf(root);
  editItem(random.pick(all), all, random);
  return encode(root, random.chance(0.95));
}

/** Edits consecutive frames, each preceded by its length in `lengthBytes` bytes. */
export function editFrames(
  lengthBytes: number,
  before: number,
  edit: (input: Uint8Array, random: Random) => Uint8Array | null,
): Edit {
  return (input, random) => {
    const view = Buffer.from(input);
    const frames: Uint8Array[] = [];
    let at = before;
    while (at + lengthBytes <= view.length) {
      const end = at + lengthBytes + view.readUIntBE(at, lengthBytes);
      if (end > view.length) break;
      frames.push(view.subarray(at + lengthBytes, end));
      at = end;
    }
    const rest = view.subarray(at);
    if (frames.length === 0) return editBytes(input, random);
    const i = random.below(frames.length);
    const frame = frames[i] ?? new Uint8Array();
    switch (random.below(8)) {
      case 0:
        frames.splice(i, 1);
        break;
      case 1:
        frames.splice(i, 0, frame);
        break;
      case 2:
        frames.splice(i, 1, frames[random.below(frames.length)] ?? frame);
        break;
      case 3:
        frames.sort(() => random.next() - 0.5);
        break;
      default:
        frames[i] = edit(frame, random) ?? editBytes(frame, random);
    }
    const whole = frames.flatMap((bytes) => {
      const length = Buffer.alloc(lengthBytes);
      length.writeUIntBE(bytes.length % 2 ** (8 * lengthBytes), 0, lengthBytes);
      return [length, bytes];
    });
    return join(view.subarray(0, before), ...whole, rest);
  };
}
