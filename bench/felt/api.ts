/** A client of a node's API on one keep-alive connection, and a client of its events. */
import { Agent, type IncomingMessage, request } from 'node:http';

const agent = new Agent({ keepAlive: true });

export type Json = Readonly<Record<string, unknown>>;

function open(port: number, method: string, path: string, body: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = method === 'GET' ? {} : { 'content-type': 'application/json' };
    const outgoing = request({ host: '127.0.0.1', port, method, path, agent, headers }, resolve);
    outgoing.on('error', reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** A response that must be a success. */
export async function call(port: number, method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await open(port, method, path, body);
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  if ((answer.statusCode ?? 500) >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
  return Object(JSON.parse(text));
}

/** Creates and registers an agent; returns its AID. */
export async function newAgent(port: number, serviceTcp?: string): Promise<string> {
  const { operational_private_key_hex, delegation_proof_hex } = await call(port, 'POST', '/identity/generate');
  const service = serviceTcp === undefined ? {} : { service_tcp: serviceTcp };
  const made = await call(port, 'POST', '/agents', { operational_private_key_hex, delegation_proof_hex, ...service });
  return String(made['aid']);
}

/** The events of one type of an agent. */
export class EventWatch {
  readonly #answer: IncomingMessage;
  readonly #name: RegExp;
  #waiting: (() => void)[] = [];
  #text = '';

  private constructor(answer: IncomingMessage, type: string) {
    this.#answer = answer;
    this.#name = new RegExp(`^event: ?${type.replace('.', '\\.')}$`, 'm');
    answer.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    answer.on('error', () => {});
  }

  static async open(port: number, aid: string, type: string): Promise<EventWatch> {
    return new EventWatch(await open(port, 'GET', `/agents/${aid}/events?types=${type}`, undefined), type);
  }

  /** Time of the next event, by `performance.now()`. */
  next(): Promise<number> {
    return new Promise((resolve) => this.#waiting.push(() => resolve(performance.now())));
  }

  close(): void {
    this.#answer.destroy();
  }

  #read(chunk: string): void {
    this.#text += chunk;
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      const frame = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      if (this.#name.test(frame)) this.#waiting.shift()?.();
    }
  }
}
