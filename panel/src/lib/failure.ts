/** Failed requests. */

/** An error of the daemon, or `daemon_unreachable` if it does not respond. */
export class Failure extends Error {
  readonly code: string;
  readonly status: number;
  readonly details: unknown;

  constructor(code: string, status: number, message: string, details?: unknown) {
    super(message);
    this.code = code;
    this.status = status;
    this.details = details;
  }
}

/** The failure in an error response. */
export function failureOf(status: number, body: unknown): Failure {
  if (typeof body !== 'object' || body === null || !('error' in body) || typeof body.error !== 'string')
    return new Failure('daemon_unreachable', status, `The server is not svcd (HTTP ${status}).`);
  const message = 'message' in body && typeof body.message === 'string' ? body.message : '';
  return new Failure(body.error, status, message, 'details' in body ? body.details : undefined);
}

/** The member of the request that the daemon rejected. Empty if it names none. */
export function memberOf({ details }: Failure): string {
  const path = typeof details === 'object' && details !== null && 'path' in details ? details.path : '';
  return typeof path === 'string' ? (path.split('/')[1] ?? '') : '';
}

/** Any error as a failure. */
export function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure('internal', 0, error instanceof Error ? error.message : '');
}
