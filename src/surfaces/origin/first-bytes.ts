/**
 * Distinguishes HTTP/2 with prior knowledge (RFC 9113, section 3.3), as gRPC uses it, from HTTP/1.1 by the first bytes.
 */
import type { Socket } from 'node:net';

/** The connection preface of HTTP/2. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/**
 * Reads as many bytes as necessary and puts them back. The connection is paused afterwards.
 * @returns null if it closed before
 */
export async function firstBytes(socket: Socket): Promise<'http' | 'http2' | null> {
  return new Promise((resolve) => {
    let seen = Buffer.alloc(0);
    const over = (kind: 'http' | 'http2' | null): void => {
      socket.off('data', look).off('close', gone).off('end', gone).pause();
      if (seen.length > 0 && !socket.destroyed) socket.unshift(seen);
      resolve(kind);
    };
    const gone = (): void => over(null);
    const look = (chunk: Buffer): void => {
      seen = Buffer.concat([seen, chunk]);
      const compared = Math.min(seen.length, PREFACE.length);
      if (!seen.subarray(0, compared).equals(PREFACE.subarray(0, compared))) over('http');
      else if (compared === PREFACE.length) over('http2');
    };
    socket.on('data', look).once('close', gone).once('end', gone).resume();
  });
}
