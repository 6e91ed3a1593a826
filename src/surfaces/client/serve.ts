/** Serves a program to other agents: an identity, a local server behind it, and its publication. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listening } from '../../foundation/stream-listeners.ts';
import { changeLabels } from '../../operations/address-book-client.ts';
import { answerChallenge, KEEP_ALIVE_MS, provenCaller, provenService } from '../proven-caller.ts';
import { refuseToReplace, replacedService } from '../standing-service.ts';
import type { SvcApi } from './api.ts';
import { answer, RefusedRequest, requestOf } from './fetch-server.ts';
import { namedAid, ownAgents } from './names.ts';

const LOOPBACK = '127.0.0.1';
/** From one sign of life to the next, milliseconds: without any for an hour an agent is no longer published. */
const HEARTBEAT_MS = 10 * 60 * 1000;

/** What is known of a request besides itself. */
export interface Served {
  /** AID of the agent that calls, proven. */
  readonly caller: string;
  /** AID of the agent that is called. */
  readonly aid: string;
}

type Handler = (request: Request, served: Served) => Response | Promise<Response>;

/** A function of a request, an object with such a `fetch`, or the port of a server that runs already. */
export type App = Handler | { readonly fetch: Handler } | number;

export interface ServeOptions {
  /** What the agent is called here and by others; the agent of this name is used again, and one is made where there is none. */
  readonly name?: string;
  /** The agent that serves, by AID or label, in place of a name. */
  readonly as?: string;
  /** Names under which others find it, such as `lang.translate`, while it is served. */
  readonly services?: readonly string[];
  /** One line on what it does, shown with the services. */
  readonly brief?: string;
  /** Port of the local server; chosen by the system where it is left out. */
  readonly port?: number;
  /** Replaces the service that the agent is bound to, until it ends; without it such an agent is refused. */
  readonly replace?: boolean;
  /** Ends it. */
  readonly signal?: AbortSignal;
}

/** A program that is served. */
export interface Serving extends AsyncDisposable {
  readonly aid: string;
  /** Of an identity that was made for it, once: keep it safe and offline, it is the only way to restore the AID. */
  readonly masterKey: string | undefined;
  /** Whether the network knows where it is; the daemon goes on trying where not. */
  readonly isPublished: boolean;
  /** Serves it no more: what is under way is answered, names are withdrawn, the identity stays. */
  close(): Promise<void>;
}

function handlerOf(app: Exclude<App, number>): Handler {
  return typeof app === 'function' ? app : (request, served) => app.fetch(request, served);
}

async function handle(
  app: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  served: Served,
): Promise<void> {
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  try {
    await answer(outgoing, await app(requestOf(incoming, gone.signal), served));
  } catch (error) {
    if (error instanceof RefusedRequest) {
      outgoing.writeHead(error.status, { 'content-type': 'text/plain', connection: 'close' }).end(`${error.message}\n`);
      return;
    }
    // What went wrong is the program's own affair, and not the caller's.
    if (!gone.signal.aborted) console.error(error);
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(500).end();
  }
}

/** A server of calls. Its daemon limits them, and so this does not. */
export function callServer(app: Handler, { key, aid }: { readonly key: Uint8Array; readonly aid: string }): Server {
  return createServer({ requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    if (answerChallenge(incoming, outgoing, key)) return;
    const caller = provenCaller(incoming, { key, aid }, Date.now() / 1000);
    if (caller === null) outgoing.writeHead(403).end('Only calls of agents are answered here.\n');
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
  if (as !== undefined) return { aid: await namedAid(api, as) };
  const agents = await ownAgents(api);
  const known =
    name === undefined ? agents[0] : agents.find(({ label }) => label?.toLowerCase() === name.toLowerCase());
  if (name === undefined && agents.length > 1)
    throw new SvcError('local_aid_required', {
      message: 'Several agents are registered here: say which one serves, with "name" or "as".',
    });
  if (known !== undefined) return known;
  const { aid, master_private_key_hex: masterKey, ...made } = await api.identityGenerate();
  const { operational_private_key_hex, delegation_proof_hex } = made;
  await api.agentRegister({ operational_private_key_hex, delegation_proof_hex, publish: false });
  if (name !== undefined) await changeLabels(api, (labels) => ({ ...labels, [aid]: name }));
  return { aid, masterKey };
}

/** Publishes where the agent is, and its names. True where the network took them. */
async function publish(api: SvcApi, aid: string, { name, services = [], brief }: ServeOptions): Promise<boolean> {
  try {
    await api.agentPublish({ aid });
    if (services.length > 0) await api.serviceRegister({ aid, services: [...services], name, brief });
    return true;
  } catch (error) {
    // Alone on a network: the daemon publishes it once there is one.
    if (error instanceof SvcError) return false;
    throw error;
  }
}

/**
 * Lets other agents call a program: finds or makes its identity, binds it, publishes it, and says who calls.
 * @throws SvcError `wrong_state` where another service is bound; what the daemon answers, such as `daemon_unreachable`; an error of the system where the port is taken
 */
export async function serveOn(api: SvcApi, app: App, options: ServeOptions = {}): Promise<Serving> {
  const { aid, masterKey } = await identityFor(api, options);
  const running = typeof app === 'number' ? `http://${LOOPBACK}:${app}` : undefined;
  const replaced = await replacedService(api, aid, running);
  if (replaced !== null && options.replace !== true)
    throw refuseToReplace(aid, replaced, 'call serve() with "replace: true"');
  const { caller_key_hex } = await api.agentCallerKey({ aid });
  const server =
    typeof app === 'number'
      ? null
      : await listen(callServer(handlerOf(app), { key: Buffer.from(caller_key_hex, 'hex'), aid }), options.port ?? 0);
  const bound = server?.address();
  const port = typeof app === 'number' ? app : typeof bound === 'object' ? bound?.port : undefined;
  const address = `${LOOPBACK}:${port}`;
  // A program that is killed leaves its port to others; what runs already has nothing to prove itself by.
  const service_tcp = server === null ? `http://${address}` : provenService(address);
  const { service_tcp: standing } = await api.agentGet({ aid });
  await api.agentPatch({ aid, service_tcp, temporary: true });
  const isPublished = await publish(api, aid, options);
  const beat = setInterval(() => {
    api.agentHeartbeat({ aid }).catch(() => {});
  }, HEARTBEAT_MS);
  beat.unref();
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    clearInterval(beat);
    for (const service of options.services ?? []) await api.serviceUnregister({ aid, service }).catch(() => {});
    const { service_tcp: now } = await api.agentGet({ aid });
    // Somebody may have bound something else meanwhile, and what was bound before stays.
    if (now === service_tcp && standing !== service_tcp)
      await api.agentPatch({ aid, service_tcp: '', temporary: true });
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
