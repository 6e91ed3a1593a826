/** Why a connection for UDP over TLS failed. Messages never contain credentials. */
import { SvcError } from '../../../foundation/errors.ts';

/** Stable codes: `details.cause` of the error, and in the status. */
export const TLS_FAILURES = [
  'name_unresolved',
  'tcp_refused',
  'tcp_silent',
  'proxy_invalid',
  'proxy_unreachable',
  'proxy_wants_password',
  'proxy_command_failed',
  'proxy_refuses',
  'proxy_cannot_connect',
  'certificate',
  'tls_failed',
  'portal',
  'upgrade_stripped',
  'not_a_helper',
  'helper_full',
  'rate_limited',
  'other_network',
  'other_node',
  'forwards_nothing',
  'lost',
] as const;
export type TlsFailureCode = (typeof TLS_FAILURES)[number];

export class TlsFailure extends SvcError {
  readonly failure: TlsFailureCode;

  constructor(failure: TlsFailureCode, message: string, cause?: unknown) {
    super('connect_failed', { message, details: { cause: failure }, ...(cause === undefined ? {} : { cause }) });
    this.failure = failure;
  }
}
