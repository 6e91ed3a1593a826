/** Builds tables of declarations from their common members and defaults. */
import type { TObject, TSchema } from 'typebox';
import type { RawInput } from './input.ts';
import type { Declaration, Method } from './operation.ts';
import { NONE } from './schemas.ts';
import type { StreamDeclaration } from './stream.ts';

/** The common members of a table. */
type Common = Partial<Omit<Declaration, 'name' | 'method' | 'path' | 'permission' | 'tool'>>;

/** A declaration as the source files write it. */
interface Written extends Common {
  readonly summary: string;
  /** Method and path, such as `GET /agents/{aid}`. Only the method for operations that only MCP offers. */
  readonly route: Method | `${Method} /${string}`;
  /** Default: `read` for `GET`, `write` for the other methods. */
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

/** The declarations of a table, each with its key as its name and the exact schemas of its input and output. */
type Declared<C, T extends Readonly<Record<string, Written>>> = {
  readonly [K in keyof T]: Declaration<
    Part<C, T[K], 'params'>,
    Part<C, T[K], 'query'>,
    Part<C, T[K], 'body'>,
    T[K]['output']
  > & { readonly name: K };
};

/** Rejects unknown members, which are mistakes. */
type Exactly<T, Known extends PropertyKey> = {
  readonly [K in keyof T]: { readonly [M in Exclude<keyof T[K], Known>]: never };
};

/** No input, no heartbeat, and only the errors that every operation may return. */
const DEFAULTS = { params: NONE, query: NONE, body: NONE, heartbeat: false, errors: [] };

/** A table of operations. */
export function declare<C extends Common, T extends Readonly<Record<string, Written>>>(
  common: C,
  table: T & Exactly<T, keyof Written>,
): Declared<C, T> {
  const members = Object.entries<Written>(table).map(([name, { route, ...own }]) => {
    const [method, path] = route.split(' ');
    const permission = own.permission ?? (method === 'GET' ? 'read' : 'write');
    // A read does not show that the agent is in use.
    const heartbeat = permission === 'read' ? { heartbeat: false } : {};
    const where = path === undefined ? { method } : { method, path };
    return [name, { ...DEFAULTS, permission, ...common, ...heartbeat, ...own, ...where, name }];
  });
  return Object.fromEntries(members) as Declared<C, T>;
}

type WrittenStream<C> = Omit<StreamDeclaration, keyof C | 'name'> & Partial<StreamDeclaration>;

/** A table of streams. */
export function declareStreams<
  C extends Partial<StreamDeclaration>,
  T extends Readonly<Record<string, WrittenStream<C>>>,
>(common: C, table: T & Exactly<T, keyof StreamDeclaration>) {
  const members = Object.entries<object>(table).map(([name, own]) => [name, { ...common, ...own, name }]);
  return Object.fromEntries(members) as { readonly [K in keyof T]: StreamDeclaration & { readonly name: K } };
}
