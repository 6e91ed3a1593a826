/**
 * Single requests to the MCP server of a daemon on this machine. It keeps no sessions, so that plain
 * HTTP does: the client of the SDK takes more time for a call than the daemon itself.
 */
import { Agent, type IncomingMessage, request } from 'node:http';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import { errorOf } from '../../operations/client.ts';
import { readBytes } from '../rest/json-body.ts';

/** Largest answer: the largest fetched body, as text and as base64, with room to spare. */
const MAX_ANSWER_BYTES: number = 64 * 1024 * 1024;
/** A revision of the protocol without sessions, in which a request needs nothing but itself. */
const REVISION = '2025-11-25';

export interface DaemonTarget {
  readonly url: string;
  /** The API token; empty where the daemon asks for none. */
  readonly token: string;
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
  readonly #agent = new Agent({ keepAlive: true });

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
      const outgoing = request(target.url, { method: 'POST', agent: this.#agent, headers, signal }, resolve);
      outgoing.on('error', reject);
      outgoing.setTimeout(limitMs, () => outgoing.destroy(new SvcError('timeout')));
      outgoing.end(body);
    });
    return resultOf(answer.statusCode ?? 0, parsed((await readBytes(answer, MAX_ANSWER_BYTES)).toString()));
  }

  /** Calls back once when whoever serves a path whose answer never ends is gone, or was never there. */
  watch(target: DaemonTarget, onGone: () => void): void {
    const headers = { authorization: `Bearer ${target.token}` };
    const watching = request(target.url, { agent: this.#agent, headers }, (answer) => {
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
    this.#agent.destroy();
  }
}
