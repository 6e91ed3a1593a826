/**
 * Routes that are not JSON in, JSON out: event streams, uploads, the gateway, pages. They are
 * declared beside the operations and served by hand, behind the same gate.
 */
import type { TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../foundation/errors.ts';
import type { Method, Permission } from './operation.ts';

export interface StreamDeclaration {
  /** Its key in the table, camelCase: the `operationId` of the OpenAPI document. */
  readonly name: string;
  readonly summary: string;
  /** `ANY`: every method but CONNECT. */
  readonly methods: readonly (Method | 'HEAD')[] | 'ANY';
  /** OpenAPI form; `{name*}` at the end takes the rest of the path, slashes and all. */
  readonly path: string;
  readonly params: TObject;
  readonly query: TObject;
  /** Media type that a write must carry; left out: any, or none. */
  readonly accepts?: string;
  /** Media type of the answer. */
  readonly produces: string;
  /** What the answer is, where that is JSON. */
  readonly output?: TSchema;
  /** Status of success; 200 where it is left out. */
  readonly status?: number;
  readonly permission: Permission;
  readonly errors: readonly ErrorCode[];
  readonly tag: string;
}
