/** A remote agent, as a program uses it. */
import { SvcError } from '../../foundation/errors.ts';
import type { SvcApi } from './api.ts';
import { sendNote } from './inbox.ts';
import { namedAid } from './names.ts';

export interface AgentOptions {
  /** The agent here that calls, by AID or label; the only one where it is left out. */
  readonly as?: string;
  /** Where the called agent asks for one. */
  readonly accessToken?: string;
}

/** What of a request a call passes on. */
export interface CallRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

/** A tunnel to the TCP service of an agent. */
export interface OpenTunnel {
  readonly id: string;
  /** Where programs of this machine connect, and are with the agent. */
  readonly host: string;
  readonly port: number;
  /** How packets go: `direct`, `lan`, `mapped`, `punched`, `relay`, `turn`. */
  readonly path: string;
  close(): Promise<void>;
}

/** A call of an agent by one here; `path` begins with `/`. */
export type Carry = (
  call: { readonly aid: string; readonly as: string | undefined; readonly accessToken: string | undefined },
  path: string,
  request: CallRequest,
) => Promise<Response>;

/** Paths of the agent card, of A2A 1.0 and of 0.3 and before. */
const CARD = '/.well-known/agent-card.json';
/** Where most servers of MCP answer. */
const MCP_PATH = '/mcp';

export class RemoteAgent {
  readonly #name: string;
  readonly #api: SvcApi;
  readonly #carry: Carry;
  readonly #options: AgentOptions;

  constructor(name: string, { api, carry }: { readonly api: SvcApi; readonly carry: Carry }, options: AgentOptions) {
    this.#name = name;
    this.#api = api;
    this.#carry = carry;
    this.#options = options;
  }

  /** Its AID. @throws SvcError `not_found` where the label is none */
  aid(): Promise<string> {
    return namedAid(this.#api, this.#name);
  }

  /**
   * Calls its HTTP service. Redirects are given back as they are: only the program knows whether to follow one.
   * @param path path and query, such as `/chat?lang=en`
   * @throws SvcError what the daemon answers: `resolve_failed`, `connect_failed`, `access_denied`, …; `invalid_request`
   */
  async fetch(path: string = '/', request: CallRequest = {}): Promise<Response> {
    if (!path.startsWith('/') || path.startsWith('//'))
      throw new SvcError('invalid_request', { message: 'A path of an agent begins with one slash.' });
    const { accessToken } = this.#options;
    return await this.#carry({ aid: await this.aid(), as: await this.#local(), accessToken }, path, request);
  }

  /** The local address at which any client of A2A speaks with it, and its card there. @throws SvcError what the daemon answers */
  async a2a(): Promise<{ readonly url: string; readonly cardUrl: string }> {
    const url = await this.url();
    return { url, cardUrl: new URL(CARD, url).href };
  }

  /** The local address at which any client of MCP speaks with it over Streamable HTTP. @throws SvcError what the daemon answers */
  async mcp(path: string = MCP_PATH): Promise<{ readonly url: string }> {
    return { url: new URL(path, await this.url()).href };
  }

  /** A loopback address that is this agent for any program of this machine; it stays. @throws SvcError what the daemon answers */
  async url(): Promise<string> {
    const { accessToken: access_token } = this.#options;
    const { url } = await this.#api.originOpen({ aid: await this.aid(), local_aid: await this.#local(), access_token });
    return url;
  }

  /** Opens a tunnel to its TCP service. @throws SvcError what the daemon answers */
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

  /** Leaves a note of text, which waits where the agent is not there. @throws SvcError what the daemon answers */
  async note(text: string): Promise<void> {
    await sendNote(this.#api, this.#options.as, await this.aid(), text);
  }

  async #local(): Promise<string | undefined> {
    const { as } = this.#options;
    return as === undefined ? undefined : await namedAid(this.#api, as);
  }
}
