/**
 * Streams: routes that are not JSON in, JSON out, such as event streams, uploads, the gateway and pages. They pass the
 * same checks as operations, and each has its own handler.
 */
import type { TObject, TSchema } from 'typebox';
import type { ErrorCode } from '../foundation/errors.ts';
import type { Method, Permission } from './operation.ts';

export interface StreamDeclaration {
  /** Key in the table, camelCase: `operationId` of the OpenAPI document. */
  readonly name: string;
  readonly summary: string;
  /** `ANY`: every method except CONNECT. */
  readonly methods: readonly (Method | 'HEAD')[] | 'ANY';
  /** OpenAPI form. `{name*}` at the end matches the rest of the path with its slashes. */
  readonly path: string;
  readonly params: TObject;
  readonly query: TObject;
  /** Required media type of a write. Default: any, or none. */
  readonly accepts?: string;
  /** Writes without a body, which need no media type. */
  readonly bodiless?: readonly Method[];
  /** Media type of the response. */
  readonly produces: string;
  /** Schema of the response, if it is JSON. */
  readonly output?: TSchema;
  /** Status of success. Default: 200. */
  readonly status?: number;
  readonly permission: Permission;
  readonly errors: readonly ErrorCode[];
  readonly tag: string;
}
