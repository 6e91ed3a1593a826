/**
 * Single requests to the MCP server of a daemon on this machine. It keeps no sessions, so that plain
 * HTTP does: the client of the SDK takes more time for a call than the daemon itself.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { errorOf } from '../../operations/client.ts';
import { provenAgent } from '../proven-agent.ts';
import { readBytes } from '../rest/json-body.ts';

/** Largest answer: the largest fetched body, as text and as base64, with room to spare. */
const MAX_ANSWER_BYTES: number = 64 * 1024 * 1024;
/** A revision of the protocol without sessions, in which a request needs nothing but itself. */
const REVISION = '2025-11-25';

export interface DaemonTarget {
  readonly url: string;
  /** The API token; empty where the daemon asks for none. */
  readonly token: string;
  /** The key by which it proves itself, base64url; left out by older daemons. */
  readonly proofKey: string | undefined;
}

type Values = Readonly<Record<string, unknown>>;

interface DaemonRequest {
  readonly target: DaemonTarget;
  readonly method: string;
  readonly params: Values;
  /** How long the daemon may take to answer, milliseconds; 0: as long as it likes. */
  readonly limitMs: number;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The result in a JSON-RPC answer. */
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
  /** The agent of the daemon that was asked last, and which one that is. */
  #proven: { readonly of: string; readonly agent: Agent } | null = null;

  /**
   * Sends one request once.
   * @throws ProtocolError and SvcError as the daemon answered; `timeout`, `too_large`; what Node gives for a connection that
   *   cannot be made (`ECONNREFUSED`) or that breaks
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

  /** Calls back once when whoever serves a path whose answer never ends is gone, or was never there. */
  watch(target: DaemonTarget, onGone: () => void): void {
    const headers = { authorization: `Bearer ${target.token}` };
    const watching = request(target.url, { agent: this.#agent(target), headers }, (answer) => {
      answer
        .once('close', onGone)
        .on('error', () => {})
        .resume();
    });
    watching.on('error', onGone);
    // What is watched holds up no end of this process.
    watching.once('socket', (socket) => socket.unref());
  }

  close(): void {
    this.#plain.destroy();
    this.#proven?.agent.destroy();
  }

  /** A daemon that started again has another key, and proves itself anew. */
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
