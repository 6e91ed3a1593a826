/**
 * Sessions of the hub with the MCP servers of other agents, over calls. They are kept while they are used, because a
 * shared server may start a process for each session.
 */
import type { Client, JsonSchemaValidator, jsonSchemaValidator, Progress } from '@modelcontextprotocol/client';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { HUB_CALL_SILENCE_MS, MAX_HUB_TOOLS_PER_AGENT } from '../../foundation/domain/hub.ts';
import { MCP_PATH } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { memberOf } from '../../foundation/json.ts';
import type { TraceHeaders } from '../../foundation/traces/trace-context.ts';
import { VERSION } from '../../foundation/version.ts';

/** Sessions that are kept. The one used least recently is closed first. */
const MAX_HUB_SESSIONS = 32;
/** A session without a request is closed after this time, in milliseconds. */
const SESSION_IDLE_MS = 300_000;
/** Time limit for starting a session or reading a page of tools, in milliseconds. */
const LIST_TIMEOUT_MS = 20_000;
/** Time limit for telling a server that its session ends, in milliseconds. */
const FAREWELL_MS = 2_000;
/** Pages of a list of tools, and tools that are read from it. Tools beyond that are ignored. */
const MAX_LIST_PAGES = 20;
const MAX_LISTED: number = 2 * MAX_HUB_TOOLS_PER_AGENT;
/** Pause before a broken stream is opened again, in milliseconds. A server can ask for any pause. */
const MIN_REOPEN_MS = 1_000;
const MAX_REOPEN_MS = 60_000;

/** The two agents of a session. */
export interface Pair {
  readonly local: Aid;
  readonly remote: Aid;
}

export interface HubCall {
  /** The name of the tool at its server. */
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal;
  /** Called for each progress message, if the caller wants them. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** The trace that the call continues. */
  readonly trace?: TraceHeaders | undefined;
}

export interface McpServersDependencies {
  readonly clock: Clock;
  /** A `fetch` that calls the remote agent. */
  readonly fetch: (pair: Pair) => (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** A server reported that its tools changed. */
  readonly onChanged: (pair: Pair) => void;
}

interface Session {
  readonly client: Promise<Client>;
  /** Requests in progress. */
  pending: number;
  idle: Timer | null;
}

/** A result is not checked against the schema of a stranger: its patterns could block the daemon. */
const UNCHECKED: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (data) => ({ valid: true, data: data as T, errorMessage: undefined }),
};

/** HTTP statuses of a server without MCP at the path. */
const NO_MCP: ReadonlySet<unknown> = new Set([400, 404, 405, 406, 415, 501]);

/** The error of the hub for an error of the SDK. Errors that the server sent keep their text. */
function errorOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason instanceof SvcError ? signal.reason : new SvcError('cancelled');
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at instanceof SvcError) return at;
  const status = memberOf(error, 'data', 'status') ?? memberOf(error, 'status');
  if (NO_MCP.has(status))
    return new SvcError('no_inbound', {
      message: 'The remote agent has no MCP server. Ask its owner to share one with "svc mcp share".',
    });
  if (status === 401 || status === 403 || (error instanceof Error && error.name === 'UnauthorizedError'))
    return new SvcError('access_denied', {
      message: 'The MCP server of the remote agent requires authorization, which the hub does not support.',
    });
  if (memberOf(error, 'code') === 'REQUEST_TIMEOUT') return new SvcError('timeout', { cause: error });
  if (typeof memberOf(error, 'code') === 'number') return error;
  return new SvcError('bad_response', { message: 'The remote agent sent no valid MCP response.', cause: error });
}

export class McpServers {
  readonly #deps: McpServersDependencies;
  readonly #sessions = new Map<string, Session>();

  constructor(dependencies: McpServersDependencies) {
    this.#deps = dependencies;
  }

  /**
   * The complete list of tools of a server, up to the limit.
   * @throws SvcError `no_inbound` if there is no MCP server, `access_denied`, `timeout`, `bad_response`, errors of a
   *   call
   */
  async list(pair: Pair, signal: AbortSignal): Promise<readonly unknown[]> {
    return await this.#use(pair, signal, async (client) => {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const tools: unknown[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MAX_LIST_PAGES && tools.length < MAX_LISTED; page++) {
        // Not `listTools`, which uses a cache whose life the server chooses.
        const request = { method: 'tools/list', params: cursor === undefined ? {} : { cursor } } as const;
        const answer = await client.request(request, { signal, timeout: LIST_TIMEOUT_MS });
        tools.push(...answer.tools.slice(0, MAX_LISTED - tools.length));
        cursor = answer.nextCursor;
        if (cursor === undefined) break;
      }
      return tools;
    });
  }

  /**
   * Calls a tool and returns the result of the server. A call that may have reached the server is not repeated.
   * @throws SvcError as `list`, `cancelled`; the JSON-RPC error of the server, which has a numeric `code`
   */
  async call(
    pair: Pair,
    { name, args, signal, onProgress, trace }: HubCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    const lost = new AbortController();
    const stop = AbortSignal.any([signal, lost.signal]);
    return await this.#use(pair, stop, (client) =>
      client.callTool(
        { name, arguments: { ...args } },
        {
          signal: stop,
          timeout: HUB_CALL_SILENCE_MS,
          ...(trace === undefined ? {} : { headers: { ...trace } }),
          resetTimeoutOnProgress: true,
          onRequestStreamEnd: () =>
            lost.abort(
              new SvcError('connect_failed', {
                message: 'The connection was lost before the result arrived. The call may have completed.',
              }),
            ),
          ...(onProgress === undefined ? {} : { onprogress: onProgress }),
        },
      ),
    );
  }

  /** Closes the sessions with an agent, or all. */
  async stop(which?: Pair): Promise<void> {
    const closing = [...this.#sessions]
      .filter(([key]) => which === undefined || key === keyOf(which))
      .map(async ([key, session]) => await this.#close(key, session));
    await Promise.all(closing);
  }

  async #use<T>(pair: Pair, signal: AbortSignal, work: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await this.#once(pair, signal, work);
    } catch (error) {
      // The server ended the session, so it did not carry out the request.
      if (memberOf(error, 'data', 'status') !== 404 || signal.aborted) throw errorOf(error, signal);
    }
    try {
      return await this.#once(pair, signal, work);
    } catch (error) {
      throw errorOf(error, signal);
    }
  }

  async #once<T>(pair: Pair, signal: AbortSignal, work: (client: Client) => Promise<T>): Promise<T> {
    const key = keyOf(pair);
    const session = this.#sessions.get(key) ?? this.#open(key, pair);
    // The newest is the last.
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    session.pending++;
    session.idle?.cancel();
    try {
      return await work(await abortable(session.client, signal));
    } catch (error) {
      // After an error of a tool the session is good. After any other error the next request starts a new one. Other
      // requests of the old session continue.
      if (typeof memberOf(error, 'code') !== 'number' && !signal.aborted) this.#forget(key, session);
      throw error;
    } finally {
      session.pending--;
      if (session.pending === 0) {
        if (this.#sessions.get(key) !== session) detach(this.#close(key, session));
        else session.idle = this.#deps.clock.after(SESSION_IDLE_MS, () => detach(this.#close(key, session)));
      }
    }
  }

  #open(key: string, pair: Pair): Session {
    const session: Session = { client: this.#connect(pair), pending: 0, idle: null };
    session.client.catch(() => this.#forget(key, session));
    for (const [other, old] of this.#sessions) {
      if (this.#sessions.size < MAX_HUB_SESSIONS) break;
      if (old.pending === 0) detach(this.#close(other, old));
    }
    this.#sessions.set(key, session);
    return session;
  }

  async #connect(pair: Pair): Promise<Client> {
    // Loading the SDK takes 100 ms.
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const client = new Client(
      { name: 'svcd hub', version: VERSION },
      { versionNegotiation: { mode: 'auto' }, jsonSchemaValidator: UNCHECKED },
    );
    client.setNotificationHandler('notifications/tools/list_changed', () => this.#deps.onChanged(pair));
    const transport = new StreamableHTTPClientTransport(new URL(MCP_PATH, 'http://agent.invalid'), {
      fetch: this.#deps.fetch(pair),
      reconnectionScheduler: (reopen, wantedMs) => {
        const timer = this.#deps.clock.after(Math.min(Math.max(wantedMs, MIN_REOPEN_MS), MAX_REOPEN_MS), reopen);
        return () => timer.cancel();
      },
    });
    await client.connect(transport, { timeout: LIST_TIMEOUT_MS });
    return client;
  }

  #forget(key: string, session: Session): void {
    if (this.#sessions.get(key) === session) this.#sessions.delete(key);
  }

  async #close(key: string, session: Session): Promise<void> {
    session.idle?.cancel();
    this.#forget(key, session);
    const client = await session.client.catch(() => null);
    if (client === null) return;
    const late = Promise.withResolvers<void>();
    const timer = this.#deps.clock.after(FAREWELL_MS, late.resolve);
    await Promise.race([endSession(client), late.promise]);
    timer.cancel();
    await client.close();
  }
}

/** Tells the server that the session ends, so that it can stop its process. */
async function endSession({ transport }: Client): Promise<void> {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession().catch(() => {});
}

function keyOf({ local, remote }: Pair): string {
  return `${local} ${remote}`;
}
