/** A webhook of an A2A client that records the received notifications. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

/** Deadline for a notification, milliseconds. */
const LIMIT_MS = 30_000;

/** A notification as the program behind the webhook receives it. */
export interface Notified {
  readonly path: string | undefined;
  readonly type: string | undefined;
  readonly token: unknown;
  readonly body: string;
  /** The caller as verified by svcd. Undefined if the server posted directly. */
  readonly caller: unknown;
}

export interface Webhook {
  readonly url: string;
  /** The first notification for a path whose body contains a word. @throws Error after the deadline */
  readonly heard: (path: string, word: RegExp) => Promise<Notified>;
}

async function read(request: IncomingMessage): Promise<Notified> {
  const body = Buffer.concat(await request.toArray()).toString();
  const { url: path, headers } = request;
  const token = headers['x-a2a-notification-token'];
  return { path, type: headers['content-type'], token, body, caller: headers['svc-caller-aid'] };
}

export async function openWebhook(): Promise<Webhook> {
  const all: Notified[] = [];
  const listeners = new Set<(one: Notified) => void>();
  const server = createServer((request, response) => {
    read(request).then(
      (one) => {
        all.push(one);
        for (const tell of listeners) tell(one);
        response.writeHead(204).end();
      },
      () => response.destroy(),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const heard = (path: string, word: RegExp): Promise<Notified> =>
    new Promise((resolve, reject) => {
      const look = (one: Notified): void => {
        if (one.path === path && word.test(one.body)) resolve(one);
      };
      listeners.add(look);
      for (const one of all) look(one);
      setTimeout(() => reject(new Error('no notification arrived')), LIMIT_MS).unref();
    });
  return { url: `http://127.0.0.1:${address.port}`, heard };
}
