/** Floods of the API from this machine. */
import { connect, type Socket } from 'node:net';
import { type Flood, paced, type Target } from './flood.ts';

/** More connections than the API accepts. */
const CONNECTIONS = 2500;
const CONNECTS_PER_SECOND = 1000;
const REQUESTS_PER_SECOND = 5000;
const LANES = 32;

function open({ api }: Target, first: string, keep: Set<Socket>): Socket {
  const socket = connect({ port: api.port, host: api.host }, () => socket.write(first));
  keep.add(socket);
  socket.resume().on('error', () => {});
  socket.once('close', () => keep.delete(socket));
  return socket;
}

/** Keeps as many connections open as possible. Each sends a first part, and then one byte at a time. */
function slow(first: (target: Target) => string, more: string | null): Flood {
  return async (target) => async (until, sent) => {
    const sockets = new Set<Socket>();
    let turn = 0;
    await paced(CONNECTIONS, until, () => {
      if (sockets.size < CONNECTIONS) {
        open(target, first(target), sockets);
        sent(1);
      }
      // Every connection sends about once a second.
      if (more === null || turn++ % CONNECTIONS !== 0) return;
      for (const socket of sockets) if (socket.writable) socket.write(more);
    });
    for (const socket of sockets) socket.destroy();
  };
}

function hostOf({ api }: Target): string {
  return `Host: ${api.host}:${api.port}\r\n`;
}

const churnConnections: Flood = async (target) => async (until, sent) => {
  const sockets = new Set<Socket>();
  await paced(CONNECTS_PER_SECOND, until, () => {
    const socket = open(target, 'GET', sockets);
    socket.once('connect', () => socket.destroy());
    sent(1);
  });
};

/** Requests on keep-alive connections, all of them rejected. */
const refused: Flood = async (target) => {
  const request = `GET /agents HTTP/1.1\r\n${hostOf(target)}Origin: http://elsewhere.example\r\n\r\n`;
  return async (until, sent) => {
    const sockets = new Set<Socket>();
    const lanes = Array.from({ length: LANES }, () => open(target, '', sockets));
    await paced(REQUESTS_PER_SECOND, until, (index) => {
      const at = index % LANES;
      if (lanes[at]?.destroyed !== false) lanes[at] = open(target, '', sockets);
      lanes[at]?.write(request);
      sent(1);
    });
    for (const socket of sockets) socket.destroy();
  };
};

const BODY_HEAD = 'Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{';

export const apiFloods: Readonly<Record<string, Flood>> = {
  'API, slow heads': slow((target) => `GET /health HTTP/1.1\r\n${hostOf(target)}X-Slow: `, 'x'),
  'API, slow bodies': slow((target) => `POST /identity/generate HTTP/1.1\r\n${hostOf(target)}${BODY_HEAD}`, ' '),
  'API, silent connections': slow(() => '', null),
  'API, connection churn': churnConnections,
  'API, refused requests': refused,
};
