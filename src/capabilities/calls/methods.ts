/** Properties of HTTP methods in upper case (RFC 9110, section 9). */
import { METHODS } from 'node:http';

/** Usually come without a body: nothing has to say that there is none. */
export const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
/** May be sent twice without doing twice. */
export const IDEMPOTENT: ReadonlySet<string> = new Set([...BODILESS, 'PUT', 'DELETE']);
/** What a call may have: all that HTTP parsers know but CONNECT. */
export const CALLABLE: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== 'CONNECT'));
