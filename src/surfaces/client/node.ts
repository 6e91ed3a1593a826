/** `svcd/client` for Node, connected to the daemon of this user. */
import { recordedDaemonAddress, runningDaemonAddress } from '../../foundation/data-dir/daemon-info.ts';
import { defaultDataDir } from '../../foundation/data-dir/paths.ts';
import { clientEnvironment, namedDataDir } from '../../foundation/environment.ts';
import { SvcError } from '../../foundation/errors.ts';
import { errorOf } from '../../operations/client.ts';
import { provenAgent } from '../proven-agent.ts';
import type { SvcApi } from './api.ts';
import { SvcDaemon } from './daemon.ts';
import type { Group, GroupOptions } from './group.ts';
import type { InboxOptions, ReceivedNote } from './inbox.ts';
import type { DaemonOptions } from './place.ts';
import { type AgentOptions, type RemoteAgent, type SendCall, sendThroughApi } from './remote-agent.ts';
import { type App, type ServeOptions, type Serving, serveApp } from './serve.ts';
import { unlimitedFetch } from './unlimited-fetch.ts';

export { SvcError } from '../../foundation/errors.ts';
export type { App, RequestInfo as Served, ServeOptions, Serving } from './serve.ts';

/** Set by the daemon if a call fails. A service cannot set it. */
const ERROR_HEADER = 'svc-error';

/** Sends calls through the local address of the agent. Bodies of any length stream in both directions. */
function sendThroughLocalAddress(api: SvcApi): SendCall {
  const through = sendThroughApi(api);
  return async (call, path, request) => {
    const { aid, as: local_aid, accessToken: access_token } = call;
    const { signal } = request;
    let url: string;
    try {
      ({ url } = await api.originOpen({ aid, local_aid, access_token }, signal === undefined ? {} : { signal }));
    } catch (error) {
      // The number of local addresses is limited. Without one the call goes through the API.
      if (error instanceof SvcError && error.code === 'quota_exceeded') return await through(call, path, request);
      throw error;
    }
    const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
    // Redirects are not followed: they may lead to other programs on this machine.
    const response = await unlimitedFetch(new URL(path, url), given);
    if (!response.headers.has(ERROR_HEADER)) return response;
    throw errorOf(response.status, await response.json().catch(() => undefined));
  };
}

/** The data directory of this user's daemon, or null if unknown. */
function ownDataDir(): string | null {
  try {
    return namedDataDir(process.env) ?? defaultDataDir();
  } catch {
    return null;
  }
}

/** Fails as `fetch` does. */
function failed(signal: AbortSignal | null | undefined, cause: unknown): never {
  throw signal?.aborted === true ? signal.reason : new TypeError('request failed', { cause });
}

/** A daemon that can also serve local programs to other agents. */
export class LocalDaemon extends SvcDaemon {
  constructor(options: DaemonOptions) {
    const agent = provenAgent(options.baseUrl, { token: options.token ?? '', dataDir: ownDataDir() });
    const send = async (url: string, init: RequestInit): Promise<Response> => {
      if (agent === undefined) return await unlimitedFetch(url, init);
      if (await agent.needsToken().catch((cause: unknown) => failed(init.signal, cause)))
        return await unlimitedFetch(url, init, agent);
      const headers = new Headers(init.headers);
      headers.delete('authorization');
      return await unlimitedFetch(url, { ...init, headers });
    };
    super({ ...options, fetch: send, ...(agent === undefined ? {} : { streamFetch: send }) }, sendThroughLocalAddress);
  }

  /** Lets other agents call a program. @throws SvcError errors of the daemon */
  serve(app: App, options: ServeOptions = {}): Promise<Serving> {
    return serveApp(this.api, app, options);
  }
}

/**
 * The daemon as `svc` finds it, from `SVC_API`, `SVC_TOKEN` and `SVCD_DATA_DIR`.
 * @throws SvcError `daemon_unreachable`, `config_invalid`
 */
function place(environment: NodeJS.ProcessEnv): DaemonOptions {
  const { SVC_API, SVC_TOKEN, SVCD_DATA_DIR } = clientEnvironment(environment);
  const found =
    SVC_API ??
    (SVCD_DATA_DIR === undefined ? recordedDaemonAddress(defaultDataDir()) : runningDaemonAddress(SVCD_DATA_DIR));
  if (typeof found !== 'string') throw found;
  return { baseUrl: found, ...(SVC_TOKEN === undefined ? {} : { token: SVC_TOKEN }) };
}

/** Connects to the daemon of this user, or to another one. @throws SvcError `daemon_unreachable`, `invalid_request` */
export function connect(options: Partial<DaemonOptions> = {}): LocalDaemon {
  const { baseUrl, token } = options;
  const found = baseUrl === undefined ? place(process.env) : { baseUrl };
  return new LocalDaemon({ ...found, ...(token === undefined ? {} : { token }) });
}

/** `connect().serve(…)` */
export function serve(app: App, options?: ServeOptions): Promise<Serving> {
  return connect().serve(app, options);
}

/** `connect().agent(…)` */
export function agent(name: string, options?: AgentOptions): RemoteAgent {
  return connect().agent(name, options);
}

/** `connect().inbox(…)` */
export function inbox(options?: InboxOptions): AsyncGenerator<ReceivedNote, void> {
  return connect().inbox(options);
}

/** `connect().group(…)` */
export function group(id: string, options?: GroupOptions): Group {
  return connect().group(id, options);
}
