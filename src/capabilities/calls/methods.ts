/** Properties of HTTP methods in upper case (RFC 9110, section 9). */
import { METHODS } from 'node:http';

/** Usually have no body, so no header needs to say that there is none. */
export const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
/** Safe to send twice. */
export const IDEMPOTENT: ReadonlySet<string> = new Set([...BODILESS, 'PUT', 'DELETE']);
/** Methods that a call may use: all methods of Node's HTTP parser except CONNECT. */
export const CALLABLE: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'CONNECT'));
