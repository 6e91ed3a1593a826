/**
 * An HTTP proxy with CONNECT only. It can require a password, refuse ports, and inspect TLS with certificates of a
 * local authority.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type Duplex, pipeline, Transform } from 'node:stream';
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls';
import { Authority } from './certificates.ts';

export interface ProxySettings {
  readonly port: number;
  /** Ports to which it connects. Default: all. */
  readonly ports?: readonly number[];
  /** Default: no password is required. */
  readonly credentials?: string;
  /** True if it reads and writes the TLS of its clients. */
  readonly inspects?: boolean;
  /** True if it also refuses servers with a certificate of an unknown authority. */
  readonly verifies?: boolean;
  /** False removes `Upgrade` from requests that it reads. */
  readonly upgrades?: boolean;
}

export type ProxyCommand =
  | ({ readonly do: 'start' } & ProxySettings)
  /** Changes the password for new connections. */
  | { readonly do: 'credentials'; readonly credentials: string }
  /** Closes all connections. */
  | { readonly do: 'cut' }
  /** Counts occurrences of a text in everything that it can read. */
  | { readonly do: 'watch'; readonly text: string }
  | { readonly do: 'report' };

export interface ProxyReport {
  /** One per request: method, target and status. */
  readonly requests: readonly string[];
  /** Occurrences of the watched text. */
  readonly seen: number;
  /** The certificate of its authority, PEM. Empty if it does not inspect. */
  readonly authority: string;
}

let settings: ProxySettings = { port: 0 };
let authority: Authority | null = null;
let watched = '';
let seen = 0;
const requests: string[] = [];
const sockets = new Set<Duplex>();

/** Counts the watched text in the bytes that pass. */
function counted(): Transform {
  let rest = '';
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      if (watched !== '') {
        const text = rest + chunk.toString('latin1');
        seen += text.split(watched).length - 1;
        rest = text.slice(text.length - watched.length + 1);
      }
      done(null, chunk);
    },
  });
}

function join(a: Duplex, b: Duplex): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const)
    pipeline(from, counted(), to, () => {
      from.destroy();
      to.destroy();
    });
}

function answer(socket: Duplex, status: string, headers: readonly string[] = []): void {
  socket.end(['HTTP/1.1 '.concat(status), ...headers, 'Content-Length: 0', 'Connection: close', '', ''].join('\r\n'));
}

/** The first bytes of a request, up to the end of its head. */
async function readHead(socket: Duplex): Promise<string> {
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const [chunk]: unknown[] = await once(socket, 'data');
    head += Buffer.isBuffer(chunk) ? chunk.toString('latin1') : '';
  }
  socket.pause();
  return head;
}

/** Ends the TLS of a client, and makes another one to the server. */
async function inspect(client: Socket, host: string, port: number): Promise<void> {
  if (authority === null) return;
  const { verifies = false, upgrades = true } = settings;
  const inner = new TLSSocket(client, { isServer: true, ...authority.issue(host), ALPNProtocols: ['http/1.1'] });
  inner.on('error', () => client.destroy());
  let head = await readHead(inner);
  requests.push(`inspected ${head.slice(0, head.indexOf('\r\n'))}`);
  const options: ConnectionOptions = { host, port, rejectUnauthorized: verifies, ALPNProtocols: ['http/1.1'] };
  const server = connectTls(options);
  server.on('error', (error: NodeJS.ErrnoException) => {
    requests.push(`refused ${host}:${port} ${error.code ?? error.message}`);
    if (!inner.destroyed) answer(inner, '502 Untrusted certificate');
  });
  await once(server, 'secureConnect');
  if (!upgrades) head = head.replaceAll(/^(?:upgrade|connection):.*\r\n/gim, '');
  server.write(Buffer.from(head, 'latin1'));
  join(inner, server);
}

async function serve({ url = '', headers }: IncomingMessage, client: Socket, early: Buffer): Promise<void> {
  const { ports, credentials, inspects = false } = settings;
  const refuse = (status: string, ...lines: readonly string[]): void => {
    requests.push(`CONNECT ${url} ${status.slice(0, 3)}`);
    answer(client, status, lines);
  };
  const sent = headers['proxy-authorization'];
  if (credentials !== undefined && sent !== `Basic ${Buffer.from(credentials).toString('base64')}`)
    return refuse('407 Proxy Authentication Required', 'Proxy-Authenticate: Basic realm="lab"');
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(url) ?? [];
  if (ports !== undefined && !ports.includes(Number(port))) return refuse('403 Forbidden');
  const established = (): void => {
    requests.push(`CONNECT ${url} 200`);
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
  };
  if (inspects) {
    established();
    if (early.length > 0) client.unshift(early);
    return await inspect(client, host, Number(port));
  }
  const server = connect({ host, port: Number(port), noDelay: true });
  try {
    await once(server, 'connect');
  } catch {
    return refuse('502 Bad Gateway');
  }
  sockets.add(server);
  server.once('close', () => sockets.delete(server));
  established();
  if (early.length > 0) server.write(early);
  join(client, server);
}

const server = createServer(({ method = '', url = '' }, response) => {
  requests.push(`${method} ${url} 405`);
  response.writeHead(405).end();
});
server.on('connection', (socket) => {
  sockets.add(socket);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.once('close', () => sockets.delete(socket));
});
server.on('connect', (request: IncomingMessage, client: Socket, early: Buffer) => {
  serve(request, client, early).catch(() => client.destroy());
});

async function obey(command: ProxyCommand): Promise<ProxyReport> {
  if (command.do === 'start') {
    settings = command;
    if (command.inspects === true) authority = new Authority('Lab Inspection');
    server.listen(command.port);
    await once(server, 'listening');
  }
  if (command.do === 'credentials') settings = { ...settings, credentials: command.credentials };
  if (command.do === 'cut') for (const socket of sockets) socket.destroy();
  if (command.do === 'watch') watched = command.text;
  return { requests, seen, authority: authority?.cert ?? '' };
}

process.on('message', (command: ProxyCommand) => {
  obey(command).then(
    (report) => process.send?.(report),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.once('disconnect', () => process.exit(0));
