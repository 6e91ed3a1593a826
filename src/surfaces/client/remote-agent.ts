/** A remote agent for programs. */

import { fromBase64 } from '../../foundation/bytes.ts';
import { MCP_PATH } from '../../foundation/domain/services.ts';
import { SvcError } from '../../foundation/errors.ts';
import { base64Of, type SvcApi } from './api.ts';
import { sendNote } from './inbox.ts';
import { resolveAid } from './names.ts';

// Calls through the API, as a page in a browser sends them.

/** Statuses of responses without a body (Fetch standard, "null body status"). */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Sends calls through the API. A response is returned when it is complete. */
export function sendThroughApi(api: SvcApi): SendCall {
  return async ({ aid, as: local_aid, accessToken: access_token }, path, { method, headers, body, signal }) => {
    const body_base64 = body === undefined ? undefined : base64Of(body);
    // The caller limits the time with its signal.
    const input = { aid, path, method, headers, body_base64, local_aid, access_token, timeout_ms: 0 };
    const answer = await api.fetch(input, signal === undefined ? {} : { signal });
    if (answer.truncated)
      throw new SvcError('too_large', {
        message: 'The response is too long for the API. Use url() and fetch it there.',
      });
    const held = Object.entries(answer.headers).flatMap(([name, values]) =>
      values.map((one): [string, string] => [name, one]),
    );
    const bytes = fromBase64(answer.body) ?? new Uint8Array();
    return new Response(NO_BODY.has(answer.status) ? null : new Uint8Array(bytes), {
      status: answer.status,
      headers: held,
    });
  };
}

export interface AgentOptions {
  /** AID or label of the calling local agent. Optional if there is only one. */
  readonly as?: string;
  /** Access token, if the called agent requires one. */
  readonly accessToken?: string;
}

/** The parts of a request that a call sends. */
export interface CallRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

/** A tunnel to the TCP service of an agent. */
export interface OpenTunnel {
  readonly id: string;
  /** The address for local programs. */
  readonly host: string;
  readonly port: number;
  /** Path: `direct`, `lan`, `mapped`, `punched`, `relay`, `turn`. */
  readonly path: string;
  close(): Promise<void>;
}

/** Sends a call from a local agent to a remote one. `path` begins with `/`. */
export type SendCall = (
  call: { readonly aid: string; readonly as: string | undefined; readonly accessToken: string | undefined },
  path: string,
  request: CallRequest,
) => Promise<Response>;

/** Paths of the agent card in A2A 1.0, and in 0.3 and earlier. */
const CARD = '/.well-known/agent-card.json';

export class RemoteAgent {
  readonly #name: string;
  readonly #api: SvcApi;
  readonly #carry: SendCall;
  readonly #options: AgentOptions;

  constructor(name: string, { api, carry }: { readonly api: SvcApi; readonly carry: SendCall }, options: AgentOptions) {
    this.#name = name;
    this.#api = api;
    this.#carry = carry;
    this.#options = options;
  }

  /** Its AID. @throws SvcError `not_found` for an unknown label */
  aid(): Promise<string> {
    return resolveAid(this.#api, this.#name);
  }

  /**
   * Calls its HTTP service. Redirects are returned, not followed.
   * @param path with query, such as `/chat?lang=en`
   * @throws SvcError errors of the daemon: `resolve_failed`, `connect_failed`, `access_denied`, …; `invalid_request`
   */
  async fetch(path: string = '/', request: CallRequest = {}): Promise<Response> {
    if (!path.startsWith('/') || path.startsWith('//'))
      throw new SvcError('invalid_request', { message: 'The path of a call must begin with one slash.' });
    const { accessToken } = this.#options;
    return await this.#carry({ aid: await this.aid(), as: await this.#local(), accessToken }, path, request);
  }

  /** A local address for any A2A client, and the URL of the card there. @throws SvcError errors of the daemon */
  async a2a(): Promise<{ readonly url: string; readonly cardUrl: string }> {
    const url = await this.url();
    return { url, cardUrl: new URL(CARD, url).href };
  }

  /** A local address for any MCP client (Streamable HTTP). @throws SvcError errors of the daemon */
  async mcp(path: string = MCP_PATH): Promise<{ readonly url: string }> {
    return { url: new URL(path, await this.url()).href };
  }

  /** A loopback URL of this agent for local programs. It stays open. @throws SvcError errors of the daemon */
  async url(): Promise<string> {
    const { accessToken: access_token } = this.#options;
    const { url } = await this.#api.originOpen({ aid: await this.aid(), local_aid: await this.#local(), access_token });
    return url;
  }

  /** Opens a tunnel to its TCP service. @throws SvcError errors of the daemon */
  async tunnel(): Promise<OpenTunnel> {
    const { accessToken: access_token } = this.#options;
    const api = this.#api;
    const opened = await api.tunnelOpen({ aid: await this.aid(), local_aid: await this.#local(), access_token });
    const { hostname, port } = new URL(`tcp://${opened.listen}`);
    const close = async (): Promise<void> => {
      await api.tunnelClose({ id: opened.id });
    };
    return { id: opened.id, host: hostname, port: Number(port), path: opened.path, close };
  }

  /** Sends a text note, which waits if the agent is offline. @throws SvcError errors of the daemon */
  async note(text: string): Promise<void> {
    await sendNote(this.#api, this.#options.as, await this.aid(), text);
  }

  async #local(): Promise<string | undefined> {
    const { as } = this.#options;
    return as === undefined ? undefined : await resolveAid(this.#api, as);
  }
}
