/**
 * Posts to a webhook on this machine or in its network. The address is checked after its name is resolved for this
 * request.
 */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../foundation/clock.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { PUSH_RESPONSE_MS } from './queue-limits.ts';
import type { PostToWebhook, WebhookPost } from './types.ts';
import { isLocalIp } from './webhook-address.ts';

/**
 * @param watch receives each new connection before it is connected
 * @param isOurs true if svcd itself listens there. svcd is never a webhook
 */
export function createWebhookPoster(
  clock: Clock,
  watch: (socket: Socket) => void,
  isOurs: (ip: string, port: number) => boolean,
): PostToWebhook {
  const guarded = (socket: Socket): void => {
    watch(socket);
    socket.prependOnceListener('connect', () => {
      const { remoteAddress = '', remotePort = 0 } = socket;
      if (!isLocalIp(remoteAddress)) socket.destroy(new Error('it leads outside the local network'));
      else if (isOurs(remoteAddress, remotePort)) socket.destroy(new Error('it leads to svcd itself'));
    });
  };
  return async (post) => {
    using limit = awakeTimeout(clock, PUSH_RESPONSE_MS, post.signal);
    return await send(post, guarded, limit.signal);
  };
}

function send({ url, headers, body }: WebhookPost, guarded: (socket: Socket) => void, signal: AbortSignal) {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const make = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const own = ['Host', url.host, 'Content-Length', String(body.length), 'Connection', 'close'];
  const request = make(url, { method: 'POST', agent: false, headers: [...headers, ...own] });
  const stop = (): void => void request.destroy();
  signal.addEventListener('abort', stop, { once: true });
  request.once('socket', guarded);
  request.once('response', (answer) => {
    // Only the status matters.
    answer.on('error', () => {}).destroy();
    resolve(answer.statusCode ?? 0);
  });
  request.on('error', (cause) => {
    const reason = signal.reason instanceof SvcError ? signal.reason : null;
    reject(reason ?? new SvcError('connect_failed', { message: `The webhook does not respond (${codeOf(cause)}).` }));
  });
  request.once('close', () => signal.removeEventListener('abort', stop));
  if (signal.aborted) stop();
  else request.end(body);
  return promise;
}
