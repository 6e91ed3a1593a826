/** One question to the router by UDP, sent again until the answer comes. */
import { createSocket } from 'node:dgram';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortError } from '../../../foundation/deadline.ts';
import { SvcError } from '../../../foundation/errors.ts';

/** Where routers listen for PCP and NAT-PMP (RFC 6887, 19.1). */
export const GATEWAY_PORT = 5351;
/** Datagrams that are read while one answer is awaited. */
const MAX_DATAGRAMS_PER_QUESTION = 64;

export interface Question<T> {
  readonly datagram: Uint8Array;
  /** How long the answer is awaited after each sending, milliseconds. */
  readonly waitsMs: readonly number[];
  /** Undefined for what is not the answer. Throws what the answer comes to where it is a refusal. */
  readonly read: (datagram: Uint8Array) => T | undefined;
}

/**
 * Asks. Only datagrams from the address that was asked are read.
 * @throws SvcError `connect_failed` for silence and where nothing listens there, `cancelled`; what `read` throws
 */
export function askGateway<T>(clock: Clock, router: Address, question: Question<T>, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = createSocket(router.host.includes(':') ? 'udp6' : 'udp4');
  const [...waits] = question.waitsMs;
  let datagrams = 0;
  let timer = clock.after(0, () => {});
  const fail = (cause?: unknown): void =>
    reject(new SvcError('connect_failed', { message: 'The router does not answer.', cause }));
  const cancel = (): void => reject(abortError(signal));
  const send = (): void => {
    const wait = waits.shift();
    if (wait === undefined) return fail();
    timer = clock.after(wait, send);
    socket.send(question.datagram, (error) => {
      if (error !== null) fail(error);
    });
  };
  socket.on('error', fail);
  socket.on('message', (datagram) => {
    if (++datagrams > MAX_DATAGRAMS_PER_QUESTION) return fail();
    try {
      const answer = question.read(datagram);
      if (answer !== undefined) resolve(answer);
    } catch (error) {
      reject(error);
    }
  });
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  else
    socket.connect(router.port, router.host, () => {
      if (!signal.aborted) send();
    });
  return promise.finally(() => {
    timer.cancel();
    signal.removeEventListener('abort', cancel);
    socket.close();
  });
}
