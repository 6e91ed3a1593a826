/** Checks whether a program listens at an address. */
import { connect } from 'node:net';
import type { Address } from '../../foundation/address.ts';
import { codeOf } from '../../foundation/errors.ts';
import type { TcpCheck } from './types.ts';

/**
 * Connects and closes the connection without sending data. Never rejects.
 * @param timeoutMs includes the name lookup
 */
export async function checkTcp(address: Address, timeoutMs: number): Promise<TcpCheck> {
  const started = performance.now();
  return new Promise((resolve) => {
    const socket = connect({ host: address.host, port: address.port });
    const timer = setTimeout(() => finish('timeout'), timeoutMs);
    const finish = (error?: string): void => {
      clearTimeout(timer);
      socket.destroy();
      const ms = Math.round((performance.now() - started) * 10) / 10;
      resolve(error === undefined ? { ok: true, ms } : { ok: false, ms, error });
    };
    socket.once('connect', () => finish());
    socket.on('error', (error) => finish(codeOf(error, 'unreachable')));
  });
}
