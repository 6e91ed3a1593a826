/** The login page of a captive portal, for every web request, also with TLS. Reports when it listens. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { Authority } from './certificates.ts';
import { PORTAL_PORTS } from './rules.ts';

const LOGIN = 'http://login.portal.example/';

function answer(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(302, { location: LOGIN, 'content-type': 'text/html' }).end('<h1>Log in to use this network</h1>');
}

const servers = [
  createServer(answer).listen(PORTAL_PORTS.http),
  createTlsServer(new Authority('Lab Portal').issue('login.portal.example'), answer).listen(PORTAL_PORTS.https),
];
await Promise.all(servers.map((server) => once(server, 'listening')));
process.send?.({ ready: true });
process.once('disconnect', () => process.exit(0));
