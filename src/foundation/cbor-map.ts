/**
 * Declared CBOR maps. The fields of a map, each with its wire name, kind and bounds, give the type of the value, its
 * encoder, and a decoder that rejects everything else. Maps that strangers send are declared with these.
 */
import { fromHex, toHex } from './bytes.ts';
import { asMap, type CborValue, decodeCbor, encodeCbor, isBytes, isUint } from './cbor.ts';
import { SvcError } from './errors.ts';

/** How a value is represented in CBOR. */
export interface Kind<T> {
  /** Undefined omits the member. */
  encode(value: T): CborValue | undefined;
  /** @throws RangeError if `value` is invalid. It is undefined if the member is missing. */
  decode(value: unknown): T;
  /** The member may be missing. */
  readonly isOptional?: boolean | undefined;
}

type Members = Readonly<Record<string, unknown>>;

/** Fields by name, each with its wire name. Null: a map whose members are in the enclosing map. */
type Fields = Readonly<Record<string, readonly [wireName: string | null, kind: Kind<unknown>]>>;

/** The value of a kind. */
export type ValueOf<K> = K extends Kind<infer T> ? T : never;

type FieldValue<F> = F extends readonly [string | null, Kind<infer T>] ? T : never;
type Optional<F> = { [N in keyof F]: undefined extends FieldValue<F[N]> ? N : never }[keyof F];
type Flat<T> = { readonly [N in keyof T]: T[N] };
type MapValue<F> = Flat<
  { [N in Exclude<keyof F, Optional<F>>]: FieldValue<F[N]> } & { [N in Optional<F>]?: FieldValue<F[N]> }
>;

function invalid(): RangeError {
  return new RangeError('malformed member');
}

function kindOf<T extends CborValue>(isValid: (value: unknown) => value is T): Kind<T> {
  return {
    encode: (value) => value,
    decode: (value) => {
      if (isValid(value)) return value;
      throw invalid();
    },
  };
}

export function uint(max?: number): Kind<number> {
  return kindOf((value) => isUint(value, max));
}

export const bool: Kind<boolean> = kindOf((value) => typeof value === 'boolean');

/** Bytes of this length. */
export function bytes(length: number): Kind<Uint8Array> {
  return kindOf((value) => isBytes(value, length));
}

export function bytesUpTo(max: number): Kind<Uint8Array> {
  return kindOf((value): value is Uint8Array => isBytes(value) && value.length <= max);
}

/** Bytes of this length that are lower-case hex in the interface. */
export function hex(length: number): Kind<string> {
  return converted(bytes(length), toHex, (value) => fromHex(value) ?? new Uint8Array());
}

/** A text with a bound. */
export function text(isValid: (text: string) => boolean): Kind<string> {
  return kindOf((value): value is string => typeof value === 'string' && isValid(value));
}

/** One of several words, as its place in the list. */
export function word<const T extends string>(words: readonly T[]): Kind<T> {
  return {
    encode: (value) => words.indexOf(value),
    decode: (value) => {
      const found = isUint(value) ? words[value] : undefined;
      if (found === undefined) throw invalid();
      return found;
    },
  };
}

export function list<T>(item: Kind<T>, max: number): Kind<readonly T[]> {
  return {
    encode: (values) => values.map((value) => item.encode(value) ?? null),
    decode: (value) => {
      if (!Array.isArray(value) || value.length > max) throw invalid();
      return value.map((one: unknown) => item.decode(one));
    },
  };
}

/** An array with one item for each field. */
export function tuple<const K extends Readonly<Record<string, Kind<unknown>>>>(
  items: K,
): Kind<{ readonly [N in keyof K]: ValueOf<K[N]> }> {
  const all = Object.entries(items);
  type Value = { readonly [N in keyof K]: ValueOf<K[N]> };
  return {
    encode: (value) => all.map(([field, kind]) => kind.encode(value[field]) ?? null),
    decode: (value) => {
      if (!Array.isArray(value) || value.length !== all.length) throw invalid();
      return Object.fromEntries(all.map(([field, kind], i) => [field, kind.decode(value[i])])) as Value;
    },
  };
}

/** A value in another form. @param read null or a RangeError if the value is invalid */
export function converted<T, U>(kind: Kind<T>, read: (value: T) => U | null, write: (value: U) => T): Kind<U> {
  return {
    encode: (value) => kind.encode(write(value)),
    decode: (value) => {
      const result = read(kind.decode(value));
      if (result === null) throw invalid();
      return result;
    },
  };
}

/** A value with a further condition. */
export function where<T>(kind: Kind<T>, isValid: (value: T) => boolean): Kind<T> {
  return {
    isOptional: kind.isOptional,
    encode: (value) => kind.encode(value),
    decode: (value) => {
      const result = kind.decode(value);
      if (isValid(result)) return result;
      throw invalid();
    },
  };
}

/** A member that is omitted if it is `none`, or empty like `none`. */
export function orElse<T, const N>(kind: Kind<T>, none: N): Kind<T | N> {
  const isNone = (value: T | N): value is N =>
    value === none || (Array.isArray(value) && Array.isArray(none) && value.length === 0);
  return {
    isOptional: true,
    encode: (value) => (isNone(value) ? undefined : kind.encode(value)),
    decode: (value) => (value === undefined ? none : kind.decode(value)),
  };
}

export function nullable<T>(kind: Kind<T>): Kind<T | null> {
  return orElse(kind, null);
}

export function optional<T>(kind: Kind<T>): Kind<T | undefined> {
  return orElse(kind, undefined);
}

/** A boolean that is `true` or omitted. */
export const flag: Kind<boolean> = orElse(
  kindOf((value) => value === true),
  false,
);

interface MapOptions<T> {
  /** The value of the member `v`. */
  readonly version?: number;
  /** Unknown members are ignored, so that later versions can add some. */
  readonly isOpen?: boolean;
  /** A condition of the whole map. */
  readonly isValid?: (value: T) => boolean;
}

/** A map with these fields. */
export class CborMap<const F extends Fields> implements Kind<MapValue<F>> {
  readonly #members: readonly (readonly [field: string, wireName: string, kind: Kind<unknown>])[];
  readonly #inlined: readonly (readonly [field: string, map: CborMap<Fields>])[];
  readonly #required: readonly string[];
  readonly #optional: readonly string[] | 'any';
  readonly #version: number | undefined;
  readonly #isValid: (value: MapValue<F>) => boolean;

  constructor(fields: F, { version, isOpen = false, isValid = () => true }: MapOptions<MapValue<F>> = {}) {
    const all = Object.entries(fields);
    const members = all.flatMap(([field, [name, kind]]) => (name === null ? [] : [[field, name, kind] as const]));
    const inlined = all.flatMap(([field, [name, kind]]) =>
      name === null && kind instanceof CborMap ? [[field, kind] as const] : [],
    );
    const names = Object.groupBy(members, ([, , { isOptional }]) => (isOptional === true ? 'optional' : 'required'));
    const { required = [], optional: others = [] } = names;
    this.#members = members;
    this.#inlined = inlined;
    this.#version = version;
    this.#isValid = isValid;
    this.#required = [
      ...(version === undefined ? [] : ['v']),
      ...required.map(([, name]) => name),
      ...inlined.flatMap(([, map]) => map.#required),
    ];
    this.#optional = isOpen
      ? 'any'
      : [...others.map(([, name]) => name), ...inlined.flatMap(([, map]) => map.#optional)];
  }

  encode(value: MapValue<F>): { readonly [name: string]: CborValue } {
    const members: { [name: string]: CborValue } = this.#version === undefined ? {} : { v: this.#version };
    this.#write(value, members);
    return members;
  }

  #write(value: Members, members: { [name: string]: CborValue }): void {
    for (const [field, name, kind] of this.#members) {
      const encoded = kind.encode(value[field]);
      if (encoded !== undefined) members[name] = encoded;
    }
    for (const [field, map] of this.#inlined) map.#write(Object(value[field]), members);
  }

  decode(value: unknown): MapValue<F> {
    const members = asMap(value, this.#required, this.#optional);
    if (members === null || (this.#version !== undefined && members['v'] !== this.#version)) throw invalid();
    return this.#read(members);
  }

  #read(members: Members): MapValue<F> {
    const values: Record<string, unknown> = {};
    for (const [field, name, kind] of this.#members) {
      const value = kind.decode(members[name]);
      if (value !== undefined) values[field] = value;
    }
    for (const [field, map] of this.#inlined) values[field] = map.#read(members);
    const result = values as MapValue<F>;
    if (!this.#isValid(result)) throw invalid();
    return result;
  }
}

type UnionValue<P extends string, M extends Forms> = {
  [K in keyof M]: Flat<{ readonly [_ in P]: K } & MapValue<M[K][1]>>;
}[keyof M];
type Forms = Readonly<Record<string, readonly [tag: string | number, fields: Fields]>>;

/**
 * A map that has one of several forms. Unknown members are ignored.
 * @param field the field of the value that names its form
 * @param wireName the member that has the tag of the form
 */
export function union<const P extends string, const M extends Forms>(
  field: P,
  wireName: string,
  forms: M,
): Kind<UnionValue<P, M>> {
  const all = Object.entries(forms).map(([name, [tag, fields]]) => ({
    name,
    tag,
    map: new CborMap(fields, { isOpen: true }),
  }));
  return {
    encode: (value) => {
      const form = all.find(({ name }) => name === value[field]);
      if (form === undefined) throw invalid();
      return { ...form.map.encode(Object(value)), [wireName]: form.tag };
    },
    decode: (value) => {
      const tag = asMap(value, [wireName], 'any')?.[wireName];
      const form = all.find((one) => one.tag === tag);
      if (form === undefined) throw invalid();
      return { ...form.map.decode(value), [field]: form.name } as UnionValue<P, M>;
    },
  };
}

/** Encodes a value. @throws RangeError if a text is not well-formed Unicode */
export function toBytes<T>(kind: Kind<T>, value: T): Uint8Array {
  return encodeCbor(kind.encode(value) ?? null);
}

/** Decodes bytes. Null if they are invalid, or more than `maxBytes`. */
export function fromBytes<T>(kind: Kind<T>, bytes: Uint8Array, maxBytes: number): T | null {
  return orNull(() => kind.decode(decodeCbor(bytes, maxBytes)));
}

/** The result of a decoder; null if the value is invalid. */
function orNull<T>(decode: () => T): T | null {
  try {
    return decode();
  } catch (error) {
    if (error instanceof RangeError || error instanceof SvcError) return null;
    throw error;
  }
}
