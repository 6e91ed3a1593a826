/**
 * Each operation is declared once, as data. The REST route, the OpenAPI document, the MCP tool, the typed client and
 * the reference page come from the declaration. Its handler is in operations/handlers/, so that a client imports no
 * capability.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../foundation/errors.ts';
import type { TraceHeaders } from '../foundation/traces/trace-context.ts';

/**
 * `peer`: remote content, also governed by the called agent's access list. `open`: without a token, because it returns
 * no data or authenticates the caller itself.
 */
export type Permission = 'read' | 'write' | 'local_only' | 'peer' | 'open';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ToolDeclaration {
  /** Name in the MCP tool list: `svc_…`, `chat_…` or `group_…`. */
  readonly name: string;
  /** Short: each word costs the assistant context. */
  readonly description: string;
  /** Tool parameter to input key, if they differ (`remote_aid` → `aid`). */
  readonly rename?: Readonly<Record<string, string>>;
  /** Input keys that the tool does not have. */
  readonly omit?: readonly string[];
  /**
   * `aid` names another agent, or the one to delete, so it must not be omitted. Other tools act for the only local agent
   * then.
   */
  readonly requiresAid?: true;
  /** The result contains text written by other agents. */
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
  /** Key in the table, camelCase: `operationId` of the OpenAPI document and method of the typed client. */
  readonly name: string;
  /** Summary for the reference. */
  readonly summary: string;
  readonly method: Method;
  /** OpenAPI form: `/agents/{aid}`. Absent if only MCP offers the operation. */
  readonly path?: string;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly output: R;
  /** Media type of the response body, which is JSON. Default: `application/json`. */
  readonly produces?: string;
  /** The body in the OpenAPI document, if the handler checks rules that `body` does not contain. */
  readonly shownBody?: TObject;
  /** Largest JSON body in bytes, if not the common one. */
  readonly bodyLimit?: number;
  /** Accepts and ignores any body, even if it is not JSON. */
  readonly ignoresBody?: true;
  /** The response may contain bytes that a surface writes as base64: see `CallContext.inline`. */
  readonly carriesBytes?: true;
  /** The result is a document to store or send back: it gets no `labels`. */
  readonly isDocument?: true;
  /** Its input sets a time limit: clients add none. */
  readonly limitsItself?: true;
  /** Status of success. Default: 200. */
  readonly status?: number;
  /** Other statuses of success that the handler may set. */
  readonly otherStatuses?: readonly number[];
  readonly permission: Permission;
  /**
   * Whether success counts as a heartbeat of the agent in `aid`. `local_aid`: of the local agent in that member, or the
   * only one. `tunnel`: of the local agent of the tunnel.
   */
  readonly heartbeat: boolean | 'local_aid' | 'tunnel';
  /** Errors of this operation, without the common ones (schema, token, rate limit, internal). */
  readonly errors: readonly ErrorCode[];
  /** The operation calls tools: their errors keep their codes and get this status. */
  readonly toolErrorStatus?: number;
  readonly tool?: ToolDeclaration;
  /** Section of the reference page, and tag of the OpenAPI document. */
  readonly tag: string;
}

export type Declarations = Readonly<Record<string, Declaration>>;

/** Prefix of a body member in the flat input if a path parameter has the same name. */
export const BODY_PREFIX = 'body_';

/** The key of a body member in the flat input. */
export function bodyInputKey(key: string, params: TObject): string {
  return Object.hasOwn(params.properties, key) ? `${BODY_PREFIX}${key}` : key;
}

/** True if an object schema accepts unknown keys. */
export function isOpen(schema: TObject): boolean {
  return Reflect.get(schema, 'additionalProperties') !== false;
}

type BodyInput<P, B> = { [K in keyof B as K extends keyof P & string ? `${typeof BODY_PREFIX}${K}` : K]: B[K] };

/** Flat input of an operation: path, query and body members together. */
export type InputOf<D extends Declaration> = Static<D['params']> &
  Static<D['query']> &
  BodyInput<Static<D['params']>, Static<D['body']>>;
export type OutputOf<D extends Declaration> = Static<D['output']>;

/** Bytes in a response, until they are freed. */
export interface AnswerBytes {
  bytes(): Uint8Array;
  free(): void;
}

/** The caller, and its time limit. */
export interface CallContext {
  /** `local`: a loopback connection with a loopback Host. Remote administration and the gateway are never local. */
  readonly origin: 'local' | 'remote' | 'remote_admin';
  /**
   * Requires the API token, if one is set, from local programs too: uploads fill the disk with data that others read.
   * @throws SvcError `unauthorized`, or `rate_limited` after many wrong tokens
   */
  requireToken(): void;
  /** Panel session of the caller; null or absent for all others. */
  readonly session?: string | null;
  /** The caller is a page in a browser, such as the panel. */
  readonly fromPage?: boolean;
  /**
   * Checks a secret that is not in the request headers. A wrong one counts as a wrong token. Absent if the caller needs
   * no token.
   * @throws SvcError `unauthorized`, `rate_limited`
   */
  readonly trySecret?: (isRight: () => boolean) => void;
  /** `If-Match`: the versions that the write accepts. Absent: any. */
  readonly ifMatch?: string;
  /** The trace headers of the request, for calls that it makes. */
  readonly trace?: TraceHeaders | undefined;
  /** Sets the `ETag` of the response. Absent if the surface has none. */
  showVersion?(etag: string): void;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /**
   * Takes bytes, once, and returns a placeholder for the response: the surface writes their base64 there. Absent if the
   * operation does not set `carriesBytes`, or if the surface needs the text.
   */
  inline?(bytes: AnswerBytes): string;
  /** Sets another status of success, such as 200 instead of 201. */
  setStatus(status: number): void;
  /**
   * Calls back when the response was sent or has failed, so that data that was handed out and then deleted can be
   * restored. Absent if the surface cannot tell.
   */
  onAnswered?(settled: (arrived: boolean) => void): void;
  /**
   * Receives the name of the tool before it runs, because the path does not contain it. An exception prevents the call.
   */
  onTool?(name: string): void;
}

/** A read-only value in which optional members may be undefined, because JSON omits them. */
export type Loose<T> = T extends string
  ? T
  : T extends readonly (infer E)[]
    ? readonly Loose<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Loose<T[K]> | (Partial<Pick<T, K>> extends Pick<T, K> ? undefined : never) }
      : T;

/** The result of a handler, which a surface writes as JSON. */
export type ResultOf<D extends Declaration> = Loose<OutputOf<D>>;

export type Handler<D extends Declaration> = (
  input: InputOf<D>,
  context: CallContext,
) => ResultOf<D> | Promise<ResultOf<D>>;

/** One handler for each declaration of a table. */
export type Handlers<T extends { readonly [K in keyof T]: Declaration }> = { readonly [K in keyof T]: Handler<T[K]> };

/** A declaration with its handler. The handler expects validated input. */
export interface BoundOperation {
  readonly declaration: Declaration;
  run(input: Readonly<Record<string, unknown>>, context: CallContext): Promise<unknown>;
}

/** Joins declarations and handlers. Surfaces validate the input before they run a handler. */
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
