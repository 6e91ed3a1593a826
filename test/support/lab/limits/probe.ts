/** Plain sockets on a lab machine, controlled by a test. */
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Machine } from '../namespaces.ts';
import type { Place, ProbeAnswer, ProbeCommand } from './probe-process.ts';

const PROCESS = fileURLToPath(new URL('probe-process.ts', import.meta.url));

/** An address as text: `203.0.113.10:443` or `[2001:db8::1]:443`. */
function placeOf(address: string): Place {
  const [, host = '', port = ''] = /^\[?([^\]]*)\]?:(\d+)$/.exec(address) ?? [];
  return { host, port: Number(port) };
}

export class Probe {
  readonly #child: ChildProcess;
  #asked = 0;
  readonly #waiting = new Map<number, (answer: string) => void>();

  constructor(machine: Machine) {
    this.#child = machine.fork(PROCESS);
    this.#child.on('message', ({ id, answer }: ProbeAnswer) => {
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
  }

  async #do(command: ProbeCommand): Promise<string> {
    const id = ++this.#asked;
    return await new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#child.send({ ...command, id });
    });
  }

  /** Starts echo services at ports; the ones with TLS have a certificate of an unknown authority. */
  async serve(ports: { readonly udp: readonly number[]; readonly tcp: readonly number[]; readonly tls: number }) {
    await this.#do({ do: 'serve', ...ports });
  }

  /** Sends a datagram. @returns `echoed` or `silent` */
  async udp(address: string, message: Uint8Array): Promise<string> {
    return await this.#do({ do: 'udp', ...placeOf(address), hex: Buffer.from(message).toString('hex') });
  }

  /** Sends bytes over TCP, after a pause. @returns `echoed`, `silent`, or the code of an error */
  async tcp(address: string, { bytes = 1, pauseMs = 0 } = {}): Promise<string> {
    return await this.#do({ do: 'tcp', ...placeOf(address), bytes, pauseMs });
  }

  /** Sends a text. @returns the first line of the response, or `silent` */
  async ask(address: string, text: string, isTls = false): Promise<string> {
    return await this.#do({ do: 'ask', ...placeOf(address), text, isTls });
  }

  /** Connects to an echo service through an HTTP proxy. @returns the status of a failure, or `echoed` */
  async through(proxy: string, to: string, { credentials = '', authority = '' } = {}): Promise<string> {
    return await this.#do({ do: 'proxy', ...placeOf(proxy), to, credentials, authority });
  }

  /** Sends datagrams for a time. @returns whether the first, the last, and one of a new socket were echoed */
  async flow(address: string, ms: number): Promise<string> {
    return await this.#do({ do: 'flow', ...placeOf(address), ms });
  }
}
