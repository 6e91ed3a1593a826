/** `svcd/client` in Node: everything, at the daemon that commands of this user would ask. */
import { addressIn, addressInNamed } from '../../foundation/data-dir/daemon-address.ts';
import { defaultDataDir } from '../../foundation/data-dir/paths.ts';
import { SvcError } from '../../foundation/errors.ts';
import { errorOf } from '../../operations/client.ts';
import { provenAgent } from '../proven-agent.ts';
import type { SvcApi } from './api.ts';
import { carryThrough } from './carry.ts';
import { SvcDaemon } from './daemon.ts';
import type { InboxOptions, ReceivedNote } from './inbox.ts';
import { patientFetch } from './patient-fetch.ts';
import type { DaemonOptions } from './place.ts';
import type { AgentOptions, Carry, RemoteAgent } from './remote-agent.ts';
import type { Room, RoomOptions } from './room.ts';
import { type App, type ServeOptions, type Serving, serveOn } from './serve.ts';

export { SvcError } from '../../foundation/errors.ts';
export type { App, Served, ServeOptions, Serving } from './serve.ts';

/** Set by the daemon where it could not carry a call; no service can set it. */
const ERROR_HEADER = 'svc-error';

/** Carries calls over the local address of the agent: bodies stream both ways, and are of any length. */
function carryOverOrigin(api: SvcApi): Carry {
  const through = carryThrough(api);
  return async (call, path, request) => {
    const { aid, as: local_aid, accessToken: access_token } = call;
    const { signal } = request;
    let url: string;
    try {
      ({ url } = await api.originOpen({ aid, local_aid, access_token }, signal === undefined ? {} : { signal }));
    } catch (error) {
      // There are so many addresses; without one a call goes in one piece.
      if (error instanceof SvcError && error.code === 'quota_exceeded') return await through(call, path, request);
      throw error;
    }
    const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
    // No redirect is followed: it may lead anywhere, to other programs of this machine too.
    const response = await patientFetch(new URL(path, url), given);
    if (!response.headers.has(ERROR_HEADER)) return response;
    throw errorOf(response.status, await response.json().catch(() => undefined));
  };
}

/** The data directory of this user's daemon; null where none can be told. */
function ownDataDir(): string | null {
  try {
    return process.env['SVCD_DATA_DIR'] ?? defaultDataDir();
  } catch {
    return null;
  }
}

/** A daemon that also serves programs of this machine. */
export class LocalDaemon extends SvcDaemon {
  constructor(options: DaemonOptions) {
    const agent = provenAgent(options.baseUrl, { token: options.token ?? '', dataDir: ownDataDir() });
    const send = (url: string, init: RequestInit): Promise<Response> => patientFetch(url, init, agent);
    super({ ...options, fetch: send, ...(agent === undefined ? {} : { streamFetch: send }) }, carryOverOrigin);
  }

  /** Lets other agents call a program. @throws SvcError what the daemon answers */
  serve(app: App, options: ServeOptions = {}): Promise<Serving> {
    return serveOn(this.api, app, options);
  }
}

/** Where the daemon is: as `svc` finds it, by `SVC_API`, `SVC_TOKEN` and `SVCD_DATA_DIR`. @throws SvcError `daemon_unreachable` */
function place({ SVC_API, SVC_TOKEN, SVCD_DATA_DIR }: NodeJS.ProcessEnv): DaemonOptions {
  const found = SVC_API ?? (SVCD_DATA_DIR === undefined ? addressIn(defaultDataDir()) : addressInNamed(SVCD_DATA_DIR));
  if (typeof found !== 'string') throw found;
  return { baseUrl: found, ...(SVC_TOKEN === undefined ? {} : { token: SVC_TOKEN }) };
}

/** A daemon: the one of this user, or another. @throws SvcError `daemon_unreachable`, `invalid_request` */
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

/** `connect().room(…)` */
export function room(id: string, options?: RoomOptions): Room {
  return connect().room(id, options);
}
