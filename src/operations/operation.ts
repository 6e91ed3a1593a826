/**
 * An operation is declared once, as data: from the declaration come the REST route, the OpenAPI
 * document, the MCP tool, the typed client of the command line, and the reference page. What it
 * does is bound to it elsewhere (operations/handlers/), so that a client imports no capability.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../foundation/errors.ts';

/**
 * `peer`: remote content, governed by the called agent's access list too. `open`: what holds no data or proves its
 * caller by itself, without a token.
 */
export type Permission = 'read' | 'write' | 'local_only' | 'peer' | 'open';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ToolDeclaration {
  /** As in the MCP tool list: `svc_…`, `chat_…` or `group_…`. */
  readonly name: string;
  /** Short: every word costs the assistant context. */
  readonly description: string;
  /** Tool parameter → input key, where they differ (`remote_aid` → `aid`). */
  readonly rename?: Readonly<Record<string, string>>;
  /** Input keys that the tool does not offer. */
  readonly omit?: readonly string[];
  /** The result holds text that other agents wrote. */
  readonly foreignText?: boolean;
  readonly destructive?: boolean;
  readonly idempotent?: boolean;
}

export interface Declaration<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TObject = TObject,
  R extends TSchema = TSchema,
> {
  /** Its key in the table, camelCase: the `operationId` of the OpenAPI document and the method of the typed client. */
  readonly name: string;
  /** One line, for the reference. */
  readonly summary: string;
  readonly method: Method;
  /** OpenAPI form: `/agents/{aid}`. Absent for operations that only MCP offers. */
  readonly path?: string;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly output: R;
  /** Media type of the answer, which is JSON; `application/json` where it is left out. */
  readonly produces?: string;
  /** The body as the OpenAPI document shows it, where it is checked by what is called. */
  readonly shownBody?: TObject;
  /** Largest JSON body, bytes; that of every operation where it is left out. */
  readonly bodyLimit?: number;
  /** Whatever the body is, even no JSON: nothing looks at it. */
  readonly ignoresBody?: true;
  /** Its answer may hold bytes that a surface writes as base64 itself: see `CallContext.inline`. */
  readonly carriesBytes?: true;
  /** It ends by a limit that its input names: clients wait for it without one of their own. */
  readonly limitsItself?: true;
  /** Status of success; 200 where it is left out. */
  readonly status?: number;
  /** Statuses of success that the handler may choose instead. */
  readonly otherStatuses?: readonly number[];
  readonly permission: Permission;
  /** A success counts as a heartbeat of the agent in `aid`; `local_aid`: of the one that acts, named there or the only one; `tunnel`: of the one here whose tunnel is named. */
  readonly heartbeat: boolean | 'local_aid' | 'tunnel';
  /** Beyond those that every operation may give (schema, token, rate limit, internal). */
  readonly errors: readonly ErrorCode[];
  /** It calls tools: their errors keep their codes and have this status. */
  readonly toolErrorStatus?: number;
  readonly tool?: ToolDeclaration;
  /** Section of the reference page and tag of the OpenAPI document. */
  readonly tag: string;
}

export type Declarations = Readonly<Record<string, Declaration>>;

/** Prefix of a body member in the flat input where the path has a parameter of the same name. */
export const BODY_PREFIX = 'body_';

/** A body member's key in the flat input. */
export function bodyInputKey(key: string, params: TObject): string {
  return Object.hasOwn(params.properties, key) ? `${BODY_PREFIX}${key}` : key;
}

/** True where an object schema takes keys that it does not name. */
export function isOpen(schema: TObject): boolean {
  return Reflect.get(schema, 'additionalProperties') !== false;
}

type BodyInput<P, B> = { [K in keyof B as K extends keyof P & string ? `${typeof BODY_PREFIX}${K}` : K]: B[K] };

/** The flat input of an operation: path, query and body members together. */
export type InputOf<D extends Declaration> = Static<D['params']> &
  Static<D['query']> &
  BodyInput<Static<D['params']>, Static<D['body']>>;
export type OutputOf<D extends Declaration> = Static<D['output']>;

/** Bytes that an answer carries, until they are freed. */
export interface AnswerBytes {
  bytes(): Uint8Array;
  free(): void;
}

/** Who asks, and how long they wait. */
export interface CallContext {
  /** `local`: a loopback peer with a loopback Host. Remote administration and the gateway are never local. */
  readonly origin: 'local' | 'remote' | 'remote_admin';
  /**
   * Writing objects asks for the token where one is set, of programs on this machine too: it fills the
   * disk with what others will read.
   * @throws SvcError `unauthorized`, `rate_limited` behind many wrong ones
   */
  requireToken(): void;
  /** The session of the panel that asks; null, or absent, for everybody else. */
  readonly session?: string | null;
  /** A page in a browser asks, and be it the panel. */
  readonly fromPage?: boolean;
  /**
   * Tries a secret that stands elsewhere than in the head of a request: a wrong one counts as a wrong token does.
   * Absent where nobody is asked for a token.
   * @throws SvcError `unauthorized`, `rate_limited`
   */
  readonly trySecret?: (isRight: () => boolean) => void;
  /** The versions that a write is meant for, as `If-Match` names them; absent where it is for any. */
  readonly ifMatch?: string;
  /** Says which version of a thing the answer shows, as an `ETag`. Absent where a surface has no place for it. */
  showVersion?(etag: string): void;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
  /**
   * Takes bytes, once, and returns what the answer holds in the place of their base64: the surface writes that itself.
   * Absent where the operation does not say `carriesBytes`, and where a surface needs the text.
   */
  inline?(bytes: AnswerBytes): string;
  /** The handler may answer with another status of success, such as 200 instead of 201. */
  setStatus(status: number): void;
  /**
   * Calls back once the answer has left for the client, or cannot any more: what is handed out for
   * good is given back where it did not arrive. Absent where a surface cannot tell.
   */
  onAnswered?(settled: (arrived: boolean) => void): void;
  /** Hears which tool a request calls, before it runs: the path alone does not say. What it throws keeps it from running. */
  onTool?(name: string): void;
}

/** What is only read, and where a member that may be left out may be undefined as well: JSON leaves it out then. */
export type Loose<T> = T extends string
  ? T
  : T extends readonly (infer E)[]
    ? readonly Loose<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Loose<T[K]> | (Partial<Pick<T, K>> extends Pick<T, K> ? undefined : never) }
      : T;

/** What a handler gives: a surface writes it as JSON. */
export type ResultOf<D extends Declaration> = Loose<OutputOf<D>>;

export type Handler<D extends Declaration> = (
  input: InputOf<D>,
  context: CallContext,
) => ResultOf<D> | Promise<ResultOf<D>>;

/** One handler for each declaration of a table. */
export type Handlers<T extends { readonly [K in keyof T]: Declaration }> = { readonly [K in keyof T]: Handler<T[K]> };

/** A declaration with its handler: what a surface serves. The handler takes input that fits the schemas. */
export interface BoundOperation {
  readonly declaration: Declaration;
  run(input: Readonly<Record<string, unknown>>, context: CallContext): Promise<unknown>;
}

/** Joins declarations and handlers. Surfaces validate the input against the schemas before they run one. */
export function bind<T extends { readonly [K in keyof T]: Declaration }>(
  declarations: T,
  handlers: Handlers<NoInfer<T>>,
): BoundOperation[] {
  const bound: BoundOperation[] = [];
  for (const name in declarations) {
    const handler = handlers[name];
    bound.push({
      declaration: declarations[name],
      run: async (input, context) => handler(input as InputOf<T[typeof name]>, context),
    });
  }
  return bound;
}
