/** Serves a program to other agents: an identity, a local server, and the publication. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { agentsNamed } from '../../foundation/labels.ts';
import { severalAgents } from '../../foundation/several-agents.ts';
import { flushHead } from '../../foundation/sockets.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { changeLabels } from '../../operations/address-book-client.ts';
import { answerChallenge, KEEP_ALIVE_MS, provenCaller, provenService } from '../proven-caller.ts';
import { replacedService, replacementRequired } from '../replace-service.ts';
import type { SvcApi } from './api.ts';
import { localAgents, resolveAid } from './names.ts';

// A Node server for a function of `Request` and `Response`, as web frameworks provide it.

/** Methods whose requests have no body. */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Methods that the Fetch standard forbids. */
const FORBIDDEN: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);
const HOST = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Why a request is not passed to the program, with the status of the response. */
class RefusedRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The URL of a request target, with unchanged path and query. @throws RefusedRequest */
function urlOf(target: string, host: string | undefined): URL {
  if (!target.startsWith('/')) throw new RefusedRequest(400, 'The request target is not a path.');
  const base = host !== undefined && HOST.test(host) ? host : 'localhost';
  // Concatenated as text: a path with two leading slashes would be another host. `URL` gives `\` and `#` a meaning.
  const url = URL.parse(`http://${base}${target.replaceAll('\\', '%5C').replaceAll('#', '%23')}`);
  if (url === null) throw new RefusedRequest(400, 'The request target is malformed.');
  return url;
}

/** Converts a request for web frameworks. @throws RefusedRequest if the Fetch standard has no such request */
export function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', url = '/', headersDistinct, headers } = incoming;
  if (FORBIDDEN.has(method.toUpperCase())) throw new RefusedRequest(501, `${method} is not supported.`);
  const held = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  // `OPTIONS *` refers to the whole server, which is the program.
  const target = urlOf(url === '*' && method === 'OPTIONS' ? '/' : url, headers.host);
  const body = BODILESS.has(method) ? null : Readable.toWeb(incoming);
  return new Request(target, { method, headers: held, body, signal, duplex: 'half' });
}

/** Sends a response at the speed of its reader. Rejects if the connection closes or the body fails. */
export async function sendResponse(outgoing: ServerResponse, response: Response): Promise<void> {
  const { status, headers, body } = response;
  outgoing.statusCode = status;
  for (const [name, value] of headers) if (name !== 'set-cookie') outgoing.setHeader(name, value);
  const cookies = headers.getSetCookie();
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
  if (body === null) {
    outgoing.end();
    if (!outgoing.writableFinished) await once(outgoing, 'close');
    return;
  }
  // A client may wait for the head before it sends the rest of its request.
  flushHead(outgoing);
  await pipeline(Readable.fromWeb(body), outgoing);
}

const LOOPBACK = '127.0.0.1';

/** Facts about a request. */
export interface RequestInfo {
  /** AID of the calling agent, verified. */
  readonly caller: string;
  /** AID of the called agent. */
  readonly aid: string;
}

type Handler = (request: Request, served: RequestInfo) => Response | Promise<Response>;

/** A request handler, an object with a `fetch` handler, or the port of a running server. */
export type App = Handler | { readonly fetch: Handler } | number;

export interface ServeOptions {
  /** Name of the agent here and for others. An existing agent with this name is reused; otherwise one is created. */
  readonly name?: string;
  /** AID or label of the serving agent, instead of a name. */
  readonly as?: string;
  /** Service names to publish while it is served, such as `lang.translate`. */
  readonly services?: readonly string[];
  /** One line about the service, published with it. */
  readonly brief?: string;
  /** Port of the local server. Default: chosen by the system. */
  readonly port?: number;
  /** Replaces the present service of the agent while it runs. Otherwise such an agent is an error. */
  readonly replace?: boolean;
  /** Stops serving. */
  readonly signal?: AbortSignal;
}

/** A served program. */
export interface Serving extends AsyncDisposable {
  readonly aid: string;
  /** Master key of a new identity, returned once. Store it offline: it is the only way to restore the AID. */
  readonly masterKey: string | undefined;
  /** True if the network knows its endpoint. Otherwise the daemon keeps trying. */
  readonly isPublished: boolean;
  /** Stops serving: completes running requests and withdraws the names. The identity stays. */
  close(): Promise<void>;
}

function handlerOf(app: Exclude<App, number>): Handler {
  return typeof app === 'function' ? app : (request, served) => app.fetch(request, served);
}

async function handle(
  app: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  served: RequestInfo,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  try {
    await sendResponse(outgoing, await app(toRequest(incoming, gone.signal), served));
  } catch (error) {
    if (error instanceof RefusedRequest) {
      outgoing.writeHead(error.status, { 'content-type': 'text/plain', connection: 'close' }).end(`${error.message}\n`);
      return;
    }
    // Errors of the program are logged here and not sent to the caller.
    if (!gone.signal.aborted) console.error(error);
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(500).end();
  }
}

/** A server for calls. The daemon enforces the limits, so this server has none. */
export function callServer(app: Handler, { key, aid }: { readonly key: Uint8Array; readonly aid: string }): Server {
  return createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    if (answerChallenge(incoming, outgoing, key)) return;
    const caller = provenCaller(incoming, { key, aid }, Date.now() / 1000);
    if (caller === null) outgoing.writeHead(403).end('This server responds only to calls of agents.\n');
    else detach(handle(app, incoming, outgoing, { caller, aid }));
  });
}

async function listen(server: Server, port: number): Promise<Server> {
  server.listen(port, LOOPBACK);
  await listening(server);
  return server;
}

interface Identity {
  readonly aid: string;
  readonly masterKey?: string;
}

async function identityFor(api: SvcApi, { as, name }: ServeOptions): Promise<Identity> {
  if (as !== undefined) return { aid: await resolveAid(api, as) };
  const agents = await localAgents(api);
  const own = agents.map(({ aid, label }) => ({ aid, name: label }));
  const [named] = name === undefined ? [agents[0]?.aid] : agentsNamed(name, await api.addressBookGet(), own);
  const known = agents.find(({ aid }) => aid === named);
  if (name === undefined && agents.length > 1) throw severalAgents(own, 'Name the serving one with "name" or "as".');
  if (known !== undefined) return known;
  if (named !== undefined)
    throw new SvcError('invalid_request', { message: `"${name}" is the label of ${named}. Choose another name.` });
  const { aid, master_private_key_hex: masterKey, ...made } = await api.identityGenerate();
  const { operational_private_key_hex, delegation_proof_hex } = made;
  await api.agentRegister({ operational_private_key_hex, delegation_proof_hex, publish: false });
  if (name !== undefined) await changeLabels(api, (labels) => ({ ...labels, [aid]: name }));
  return { aid, masterKey };
}

/** Publishes the endpoint of the agent and its service names. True if another node stored them. */
async function publish(api: SvcApi, aid: string, { name, services = [], brief }: ServeOptions): Promise<boolean> {
  try {
    await api.agentPublish({ aid });
    if (services.length > 0) await api.serviceRegister({ aid, services: [...services], name, brief });
    return true;
  } catch (error) {
    // Without other nodes the daemon publishes later.
    if (error instanceof SvcError) return false;
    throw error;
  }
}

/**
 * Lets other agents call a program: finds or creates its identity, binds it, publishes it, and verifies callers.
 * @throws SvcError `wrong_state` if another service is bound; errors of the daemon, such as `daemon_unreachable`; a
 *   system error if the port is in use
 */
export async function serveApp(api: SvcApi, app: App, options: ServeOptions = {}): Promise<Serving> {
  const { aid, masterKey } = await identityFor(api, options);
  const running = typeof app === 'number' ? `http://${LOOPBACK}:${app}` : undefined;
  const replaced = await replacedService(api, aid, running);
  if (replaced !== null && options.replace !== true)
    throw replacementRequired(aid, replaced, 'call serve() with "replace: true"');
  const { caller_key_hex } = await api.agentCallerKey({ aid });
  const server =
    typeof app === 'number'
      ? null
      : await listen(callServer(handlerOf(app), { key: Buffer.from(caller_key_hex, 'hex'), aid }), options.port ?? 0);
  const bound = server?.address();
  const port = typeof app === 'number' ? app : typeof bound === 'object' ? bound?.port : undefined;
  const address = `${LOOPBACK}:${port}`;
  // After a crash another program may use the port. A server that already runs cannot prove its identity.
  const service_tcp = server === null ? `http://${address}` : provenService(address);
  const { service_tcp: before } = await api.agentGet({ aid });
  await api.agentPatch({ aid, service_tcp, temporary: true });
  const isPublished = await publish(api, aid, options);
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    for (const service of options.services ?? []) await api.serviceUnregister({ aid, service }).catch(() => {});
    const { service_tcp: now } = await api.agentGet({ aid });
    // Another program may have bound a service since then, and that one stays.
    if (now === service_tcp && before !== service_tcp) await api.agentPatch({ aid, service_tcp: '', temporary: true });
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    server.closeIdleConnections();
    await closed;
  };
  const close = (): Promise<void> => (closing ??= end());
  options.signal?.addEventListener(
    'abort',
    () => {
      close().catch(() => {});
    },
    { once: true },
  );
  return { aid, masterKey, isPublished, close, [Symbol.asyncDispose]: close };
}
