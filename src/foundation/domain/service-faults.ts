/** Why a bound service gave no answer: cause, and the text for callers. The texts reveal nothing else about its machine. */

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

export function isServiceFault(word: unknown): word is ServiceFault {
  return typeof word === 'string' && Object.hasOwn(SERVICE_FAULTS, word);
}
