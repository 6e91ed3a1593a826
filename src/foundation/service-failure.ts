/** Failed connections to bound services as errors with their cause. */
import { UNPROVEN } from './daemon-proof.ts';
import { isServiceFault, SERVICE_FAULTS, type ServiceFault } from './domain/service-faults.ts';
import { codeOf, ERRORS, SvcError } from './errors.ts';

/** The causes of system errors. */
const CAUSES: Readonly<Record<string, ServiceFault>> = {
  ECONNREFUSED: 'refused',
  [UNPROVEN]: 'replaced',
  ...all('silent', ['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'EACCES', 'EPERM']),
  ...all('no_room', ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'EAGAIN']),
};

function all(fault: ServiceFault, codes: readonly string[]): Record<string, ServiceFault> {
  return Object.fromEntries(codes.map((code) => [code, fault]));
}

/** The cause of a failed connection to a service, from the error of its socket. */
export function faultOf(error: unknown): ServiceFault {
  const code = codeOf(error);
  const known = CAUSES[code];
  if (known !== undefined) return known;
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'unresolved';
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/.test(code)) return 'untrusted';
  if (/^EPROTO|TLS|SSL/.test(code)) return 'no_tls';
  return 'closed';
}

/** The error for a service that could not be reached. */
export function serviceFailure(reason: ServiceFault, cause?: unknown): SvcError {
  return new SvcError('inbound_unreachable', { message: SERVICE_FAULTS[reason], details: { reason }, cause });
}

/** The message of an error in words of svcd only: no text of a remote node. */
export function catalogMessage({ code, details }: SvcError): string {
  const reason = details?.['reason'];
  return code === 'inbound_unreachable' && isServiceFault(reason) ? SERVICE_FAULTS[reason] : ERRORS[code].message;
}
