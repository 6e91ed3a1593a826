/** Connects to a public name as a client on the Internet does. */
import { lookup } from 'node:dns/promises';
import { checkServerIdentity, connect } from 'node:tls';
import { HTTPS_PORT } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { listen } from '../../foundation/stream-listeners.ts';

/** Time for a connection and its TLS handshake, milliseconds. */
const PROBE_MS = 8_000;

/** `other`: a server without a certificate for the name answers. */
export type ProbedName = 'answers' | 'unresolved' | 'unreachable' | 'other';

/** The parts that tests replace. */
interface ProbeParts {
  readonly clock: Clock;
  readonly resolve?: (name: string) => Promise<string>;
  readonly port?: number;
}

export async function probeName(name: string, { clock, resolve, port = HTTPS_PORT }: ProbeParts): Promise<ProbedName> {
  const find = resolve ?? (async (host: string) => (await lookup(host)).address);
  const host = await find(name).catch(() => null);
  if (host === null) return 'unresolved';
  // The certificate may be one that only some clients trust.
  const socket = connect({ host, port, servername: name, rejectUnauthorized: false });
  const { promise, resolve: settle } = Promise.withResolvers<ProbedName>();
  const timer = clock.after(PROBE_MS, () => settle('unreachable'));
  const stop = listen(socket, { error: () => settle('unreachable'), close: () => settle('unreachable') });
  socket.once('secureConnect', () => {
    const isNamed = checkServerIdentity(name, socket.getPeerCertificate()) === undefined;
    settle(isNamed ? 'answers' : 'other');
  });
  const result = await promise;
  timer.cancel();
  stop();
  socket.destroy();
  return result;
}
