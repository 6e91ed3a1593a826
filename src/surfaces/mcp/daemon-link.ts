/**
 * Connects a stdio process to the daemon of its data directory. Address and token are read for every call, so that a
 * restarted daemon is found on any port.
 */

import { Agent, type IncomingMessage, request } from 'node:http';
import {
  type CallToolResult,
  type ListToolsResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Clock } from '../../foundation/clock.ts';
import { readConfigFile } from '../../foundation/config/file.ts';
import { readDaemonInfo, type SharedMcp } from '../../foundation/data-dir/daemon-info.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { CLIENT_TIMEOUT_MS, errorOf } from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import type { Declaration } from '../../operations/operation.ts';
import { ProvenAgent, provenAgent } from '../proven-agent.ts';
import { readBytes } from '../rest/json-body.ts';
import { CHANNEL_METHOD, type ChannelReply, type ChannelRequest, replyIn } from './channel.ts';
import { SHARED_PATH, WATCH_PATH } from './shared-node.ts';

// Single requests to the MCP server of a local daemon. It has no sessions, so plain HTTP is enough. The client of the
// SDK takes longer for a call than the daemon.

/** Largest response: the largest fetched body as text and as base64, with reserve. */
const MAX_ANSWER_BYTES: number = 64 * 1024 * 1024;
/** A protocol revision without sessions: each request is self-contained. */
const REVISION = '2025-11-25';

interface DaemonTarget {
  readonly url: string;
  /** The API token. Empty if the daemon requires none. */
  readonly token: string;
  /** The key that the daemon proves, base64url. Undefined for a daemon that is given by its address. */
  readonly proofKey: string | undefined;
}

type Values = Readonly<Record<string, unknown>>;

interface DaemonRequest {
  readonly target: DaemonTarget;
  readonly method: string;
  readonly params: Values;
  /** Deadline for the response, milliseconds. 0 for none. */
  readonly limitMs: number;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The result of a JSON-RPC response. */
function resultOf(status: number, body: unknown): Values {
  if (isObject(body) && isObject(body['result'])) return body['result'];
  const error = isObject(body) ? body['error'] : undefined;
  if (!isObject(error)) throw errorOf(status, body);
  const { code, message, data } = error;
  throw new ProtocolError(
    typeof code === 'number' ? code : ProtocolErrorCode.InternalError,
    typeof message === 'string' ? message : 'The daemon refused the request.',
    data,
  );
}

class DaemonRequests {
  readonly #plain = new Agent({ keepAlive: true });
  /** The HTTP agent of the last daemon, and the identity of that daemon. */
  #proven: { readonly of: string; readonly agent: Agent } | null = null;

  /**
   * Sends one request without retries.
   * @throws ProtocolError and SvcError of the daemon; `timeout`, `too_large`; Node errors for a connection that cannot
   *   be made (`ECONNREFUSED`) or is lost
   */
  async send({ target, method, params, limitMs }: DaemonRequest, signal: AbortSignal): Promise<Values> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    const agent = this.#agent(target);
    // A daemon without a token must not receive one, and proves nothing.
    const isOpen = agent instanceof ProvenAgent && target.proofKey === undefined && !(await agent.needsToken());
    const token = isOpen ? '' : target.token;
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(
        target.url,
        { method: 'POST', agent: isOpen ? this.#plain : agent, headers, signal },
        resolve,
      );
      outgoing.on('error', reject);
      outgoing.setTimeout(limitMs, () => outgoing.destroy(new SvcError('timeout')));
      outgoing.end(body);
    });
    return resultOf(answer.statusCode ?? 0, parsed((await readBytes(answer, MAX_ANSWER_BYTES)).toString()));
  }

  /** Calls back once when the server of an endless response stops, or does not respond. */
  watch(target: DaemonTarget, onGone: () => void): void {
    const headers = { authorization: `Bearer ${target.token}` };
    const watching = request(target.url, { agent: this.#agent(target), headers }, (answer) => {
      answer
        .once('close', onGone)
        .on('error', () => {})
        .resume();
    });
    watching.on('error', onGone);
    // The watch does not keep the process running.
    watching.once('socket', (socket) => socket.unref());
  }

  close(): void {
    this.#plain.destroy();
    this.#proven?.agent.destroy();
  }

  /** A restarted daemon has another key and must prove it again. */
  #agent({ url, token, proofKey }: DaemonTarget): Agent {
    const of = [url, token, proofKey].join(' ');
    if (this.#proven?.of === of) return this.#proven.agent;
    const agent = provenAgent(url, { token, proofKey });
    if (agent === undefined) return this.#plain;
    this.#proven?.agent.destroy();
    this.#proven = { of, agent };
    return agent;
  }
}

/** How long a call waits for a daemon that does not respond, about the time of a restart. */
const RECONNECT_FOR_MS = 5_000;
const RECONNECT_INTERVAL_MS = 200;

/** Tools with their own time limit. */
const SELF_LIMITED: ReadonlySet<unknown> = new Set(
  Object.values<Declaration>(operations).flatMap(({ tool, limitsItself }) =>
    tool !== undefined && limitsItself === true ? tool.name : [],
  ),
);

export interface DaemonLinkOptions {
  readonly dataDir: string;
  /** config.toml of the daemon. */
  readonly configFile: string;
  /** `SVC_TOKEN` overrides the token of the configuration file. */
  readonly token: string | undefined;
  /** Profiles separated by commas. Default: all tools. */
  readonly profiles: string | undefined;
  /** The API of a daemon of another data directory, host:port. Default: the daemon of `dataDir`. */
  readonly api?: string;
}

export interface DaemonLinkDependencies {
  readonly clock: Clock;
  /** Called when the shared node of another MCP client stops. Its replacement is found in daemon.json. */
  readonly onNodeGone?: (pid: number) => void;
}

/** True if no process listened, so that nothing was sent. */
function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED';
}

export class DaemonLink {
  readonly #options: DaemonLinkOptions;
  readonly #clock: Clock;
  readonly #requests = new DaemonRequests();
  readonly #onNodeGone: (pid: number) => void;
  /** Pid of the watched node. */
  #watched: number | null = null;
  #closed = false;

  constructor(options: DaemonLinkOptions, { clock, onNodeGone = () => {} }: DaemonLinkDependencies) {
    this.#options = options;
    this.#clock = clock;
    this.#onNodeGone = onNodeGone;
  }

  /** Starts watching the node of another MCP client, if there is one and none is watched yet. */
  watch(): void {
    if (this.#watched !== null || this.#closed) return;
    const info = readDaemonInfo(this.#options.dataDir);
    if (info?.mcp === undefined || info.pid === process.pid) return;
    const { pid, mcp } = info;
    this.#watched = pid;
    this.#requests.watch(sharedTarget(mcp, WATCH_PATH), () => {
      this.#watched = null;
      if (!this.#closed) this.#onNodeGone(pid);
    });
  }

  /** @throws SvcError `daemon_unreachable`, `unauthorized`, `cancelled`, `timeout`; ProtocolError of the daemon */
  async listTools(signal: AbortSignal): Promise<ListToolsResult> {
    return (await this.#send('tools/list', {}, signal)) as ListToolsResult;
  }

  /** @throws SvcError `daemon_unreachable`, `unauthorized`, `cancelled`, `timeout`; ProtocolError of the daemon */
  async callTool(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult> {
    return (await this.#send('tools/call', { name, arguments: args }, signal)) as CallToolResult;
  }

  /** @throws SvcError and ProtocolError as `listTools` */
  async nextItem(request: ChannelRequest, signal: AbortSignal): Promise<ChannelReply> {
    return replyIn(await this.#send(CHANNEL_METHOD, { ...request }, signal));
  }

  close(): void {
    this.#closed = true;
    this.#requests.close();
  }

  /** Sends a request. Repeats it only if it cannot have reached the daemon. */
  async #send(method: string, params: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Values> {
    const giveUpAt = this.#clock.monotonic() + RECONNECT_FOR_MS;
    for (;;) {
      let sending = false;
      try {
        const target = this.#target();
        sending = true;
        this.watch();
        const limitMs = method === CHANNEL_METHOD || SELF_LIMITED.has(params['name']) ? 0 : CLIENT_TIMEOUT_MS;
        return await this.#requests.send({ target, method, params, limitMs }, signal);
      } catch (error) {
        if (signal.aborted) throw new SvcError('cancelled');
        if (error instanceof ProtocolError) throw error;
        if (error instanceof SvcError && error.code === 'unauthorized')
          throw new SvcError('unauthorized', {
            message: 'svcd requires its API token. Set SVC_TOKEN, or api_token in config.toml of its data directory.',
            cause: error,
          });
        if (error instanceof SvcError && (sending || error.code !== 'daemon_unreachable')) throw error;
        if (sending && !isRefused(error))
          throw new SvcError('daemon_unreachable', {
            message:
              'The connection to svcd was lost during the call. The call may have completed: check before you repeat it.',
            cause: error,
          });
        if (this.#clock.monotonic() >= giveUpAt) throw unreachable(error);
      }
      await new Promise<void>((resolve) => this.#clock.after(RECONNECT_INTERVAL_MS, resolve));
    }
  }

  /** @throws SvcError `daemon_unreachable`, `config_invalid` */
  #target(): DaemonTarget {
    const { dataDir, configFile, profiles, api } = this.#options;
    const query = profiles === undefined ? '' : `?profile=${profiles}`;
    const token = this.#options.token || (readConfigFile(configFile).values.api_token ?? '');
    if (api !== undefined) return { url: `http://${api}/mcp/${query}`, token, proofKey: undefined };
    const info = readDaemonInfo(dataDir);
    if (info === null) throw new SvcError('daemon_unreachable');
    if (info.mcp !== undefined) return sharedTarget(info.mcp, `${SHARED_PATH}${query}`);
    if (info.api_addr === null)
      throw new SvcError('daemon_unreachable', {
        message: 'The svcd of this data directory is still starting. Try again.',
      });
    return { url: `http://${info.api_addr}/mcp/${query}`, token, proofKey: info.proof_key };
  }
}

/** A process without the token cannot prove to be the node of another MCP client. */
function sharedTarget({ addr, token }: SharedMcp, path: string): DaemonTarget {
  return { url: `http://${addr}${path}`, token, proofKey: token };
}

function unreachable(cause: unknown): SvcError {
  return cause instanceof SvcError
    ? cause
    : new SvcError('daemon_unreachable', { message: 'svcd does not respond. Start it with "svcd".', cause });
}
