/**
 * Single requests to the MCP server of a local daemon. It has no sessions, so plain HTTP is enough. The client of the
 * SDK takes longer for a call than the daemon.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { errorOf } from '../../operations/client.ts';
import { provenAgent } from '../proven-agent.ts';
import { readBytes } from '../rest/json-body.ts';

/** Largest response: the largest fetched body as text and as base64, with reserve. */
const MAX_ANSWER_BYTES: number = 64 * 1024 * 1024;
/** A protocol revision without sessions: each request is self-contained. */
const REVISION = '2025-11-25';

export interface DaemonTarget {
  readonly url: string;
  /** The API token. Empty if the daemon requires none. */
  readonly token: string;
  /** The key that the daemon proves, base64url. Omitted by older daemons. */
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

export class DaemonRequests {
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
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      ...(target.token === '' ? {} : { authorization: `Bearer ${target.token}` }),
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const outgoing = request(target.url, { method: 'POST', agent: this.#agent(target), headers, signal }, resolve);
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
