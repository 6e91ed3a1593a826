/** Why a bound service gave no answer: cause, and the text for callers. The texts reveal nothing else about its machine. */
import { UNPROVEN } from '../daemon-proof.ts';
import { codeOf, ERRORS, SvcError } from '../errors.ts';

export const SERVICE_FAULTS = {
  refused: 'The service of the remote agent refuses connections. Its owner must start it.',
  silent:
    'The service of the remote agent does not accept a connection in time. It may be overloaded, or a firewall on its machine may drop connections. Its owner can check it with "svc agents probe".',
  closed:
    'The service of the remote agent accepts connections, but closed this one without an answer. It may expect another protocol, or it failed at this request. Its owner should check its log.',
  unresolved: 'The host name of the service of the remote agent does not resolve. Its owner must correct its address.',
  untrusted:
    'The certificate of the service of the remote agent is not trusted. Its owner must renew it, or bind the service as https+insecure://.',
  no_tls:
    'The TLS handshake with the service of the remote agent failed. Its owner must bind it as http:// if it does not speak TLS.',
  replaced: 'Another program uses the port of the service of the remote agent. Its owner must start the service again.',
  no_room:
    'The node of the remote agent has no file descriptor or port left for a connection to its service. Try again later. Its owner can raise the limit of open files.',
} as const;
export type ServiceFault = keyof typeof SERVICE_FAULTS;

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

export function isServiceFault(word: unknown): word is ServiceFault {
  return typeof word === 'string' && Object.hasOwn(SERVICE_FAULTS, word);
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
