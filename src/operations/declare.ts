/** Writes down tables of declarations: what they have in common is said once, and what is so for most is left out. */
import type { TObject, TSchema } from 'typebox';
import type { RawInput } from './input.ts';
import type { Declaration, Method } from './operation.ts';
import { NONE } from './schemas.ts';
import type { StreamDeclaration } from './stream.ts';

/** What the operations of a table have in common. */
type Common = Partial<Omit<Declaration, 'name' | 'method' | 'path' | 'permission' | 'tool'>>;

/** An operation as it is written down. */
interface Written extends Common {
  readonly summary: string;
  /** Method and path, such as `GET /agents/{aid}`; the method alone where only MCP offers the operation. */
  readonly route: Method | `${Method} /${string}`;
  /** `read` for `GET` and `write` for all others where it is left out. */
  readonly permission?: Declaration['permission'];
  readonly output: TSchema;
  readonly tool?: Declaration['tool'];
}

type Part<C, T, K extends keyof RawInput> =
  T extends Readonly<Record<K, infer P extends TObject>>
    ? P
    : C extends Readonly<Record<K, infer P extends TObject>>
      ? P
      : typeof NONE;

/** The declarations of a table, each with its key for a name and the precise schemas of its input and output. */
type Declared<C, T extends Readonly<Record<string, Written>>> = {
  readonly [K in keyof T]: Declaration<
    Part<C, T[K], 'params'>,
    Part<C, T[K], 'query'>,
    Part<C, T[K], 'body'>,
    T[K]['output']
  > & { readonly name: K };
};

/** Nothing but these members: what a declaration does not know is a mistake. */
type Exactly<T, Known extends PropertyKey> = {
  readonly [K in keyof T]: { readonly [M in Exclude<keyof T[K], Known>]: never };
};

/** Takes no input, counts as no heartbeat, and gives no errors but those that every operation may give. */
const DEFAULTS = { params: NONE, query: NONE, body: NONE, heartbeat: false, errors: [] };

/** A table of operations. */
export function declare<C extends Common, T extends Readonly<Record<string, Written>>>(
  common: C,
  table: T & Exactly<T, keyof Written>,
): Declared<C, T> {
  const members = Object.entries<Written>(table).map(([name, { route, ...own }]) => {
    const [method, path] = route.split(' ');
    const permission = own.permission ?? (method === 'GET' ? 'read' : 'write');
    // Looking is no sign of life.
    const heartbeat = permission === 'read' ? { heartbeat: false } : {};
    const where = path === undefined ? { method } : { method, path };
    return [name, { ...DEFAULTS, permission, ...common, ...heartbeat, ...own, ...where, name }];
  });
  return Object.fromEntries(members) as Declared<C, T>;
}

type WrittenStream<C> = Omit<StreamDeclaration, keyof C | 'name'> & Partial<StreamDeclaration>;

/** A table of routes that are served by hand. */
export function declareStreams<
  C extends Partial<StreamDeclaration>,
  T extends Readonly<Record<string, WrittenStream<C>>>,
>(common: C, table: T & Exactly<T, keyof StreamDeclaration>) {
  const members = Object.entries<object>(table).map(([name, own]) => [name, { ...common, ...own, name }]);
  return Object.fromEntries(members) as { readonly [K in keyof T]: StreamDeclaration & { readonly name: K } };
}
