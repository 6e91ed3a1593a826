/** Checks of a route before it reads the body. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Permission } from '../../operations/operation.ts';
import type { AdmittedRequest } from './gate.ts';
import { hasUnreadBody } from './response.ts';

/** Timeout for a JSON body after its head, in milliseconds. */
export const BODY_TIMEOUT_MS = 30_000;

/** True if a method has a body and must declare its media type. */
export function isWrite(method: string | undefined): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** @throws SvcError `unauthorized`, `local_only` */
export function checkPermission(permission: Permission, admission: AdmittedRequest): void {
  if (!admission.authorized && permission !== 'open') throw new SvcError('unauthorized');
  if (permission === 'local_only' && admission.origin !== 'local') throw new SvcError('local_only');
}

/** @throws SvcError `unsupported_media_type` if the `Content-Type` of a write is not `accepts` */
export function checkMediaType(request: IncomingMessage, accepts: string): void {
  if (!isWrite(request.method)) return;
  const type = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (type !== accepts)
    throw new SvcError('unsupported_media_type', { message: `Send "Content-Type: ${accepts}" with this request.` });
  if (encoding !== 'identity')
    throw new SvcError('unsupported_media_type', { message: 'Send the body without a Content-Encoding.' });
}

/** Destroys the connection of an incomplete body. The timeouts of the HTTP server cover only the head. */
export function limitBodyTime(request: IncomingMessage, response: ServerResponse, clock: Clock): void {
  if (!hasUnreadBody(request)) return;
  const timer = clock.after(BODY_TIMEOUT_MS, () => {
    if (!request.complete) request.socket.destroy();
  });
  const cancel = (): void => timer.cancel();
  request.once('end', cancel);
  response.once('close', cancel);
}
