/** Properties of HTTP methods (RFC 9110, section 9). */
import { METHODS } from 'node:http';

const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']);
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
const CALLABLE: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'CONNECT'));

/** May be sent twice without doing twice. */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/** Usually comes without a body: nothing has to say that there is none. */
export function isBodiless(method: string): boolean {
  return WITHOUT_BODY.has(method);
}

/** A method in upper case that a call may have: all that HTTP parsers know but CONNECT. */
export function isCallable(method: string): boolean {
  return CALLABLE.has(method);
}
