/** A switch of a lab that delays and loses packets, as a test sees it. Needs `/dev/net/tun` and a Node with `node:ffi`. */
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Machine } from './namespaces.ts';

const PROCESS = fileURLToPath(new URL('slow-switch-process.ts', import.meta.url));

/** What happens to packets that come in by one port. */
export interface Slowness {
  /** From this port to any other, milliseconds: a round trip takes that of both ends. */
  readonly delayMs: number;
  /** The part of the packets that is lost, 0 to 1. */
  readonly loss: number;
}

/** What has come in by a port. */
export interface PortUse {
  packets: number;
  bytes: number;
  lost: number;
}

export type SwitchOrder =
  | { readonly do: 'plug'; readonly pid: number; readonly interface: string }
  | ({ readonly do: 'set'; readonly port: number } & Slowness)
  | { readonly do: 'use'; readonly port: number };

export interface SwitchAnswer {
  readonly port?: number;
  readonly use?: PortUse;
  readonly error?: string;
}

export class SlowSwitch {
  readonly #order: (line: string) => void;
  readonly #answers: Interface;
  readonly #slowness: Slowness;
  /** By the process of a machine. */
  readonly #ports = new Map<number, number>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param place a machine whose world has all machines that will be connected */
  constructor(place: Machine, slowness: Slowness) {
    const child = place.converse(process.execPath, ['--disable-warning=ExperimentalWarning', PROCESS]);
    this.#order = (line) => void child.stdin.write(line);
    this.#answers = createInterface({ input: child.stdout });
    this.#slowness = slowness;
  }

  /** Gives a machine an interface that leads here. */
  async plug(machine: Machine, name: string): Promise<void> {
    const { port = 0 } = await this.#ask({ do: 'plug', pid: machine.pid, interface: name });
    this.#ports.set(machine.pid, port);
    await this.slow(machine, this.#slowness);
  }

  /** Changes what happens to packets of a machine. */
  async slow(machine: Machine, { delayMs, loss }: Slowness): Promise<void> {
    await this.#ask({ do: 'set', port: this.#portOf(machine), delayMs, loss });
  }

  /** What a machine has sent. */
  async use(machine: Machine): Promise<PortUse> {
    const { use = { packets: 0, bytes: 0, lost: 0 } } = await this.#ask({ do: 'use', port: this.#portOf(machine) });
    return use;
  }

  #portOf(machine: Machine): number {
    const port = this.#ports.get(machine.pid);
    if (port === undefined) throw new Error(`${machine.name} is not connected to the switch`);
    return port;
  }

  /** One order after the other: answers name none. */
  async #ask(order: SwitchOrder): Promise<SwitchAnswer> {
    const answered = this.#last.then(async (): Promise<SwitchAnswer> => {
      this.#order(`${JSON.stringify(order)}\n`);
      const [line]: unknown[] = await once(this.#answers, 'line');
      return JSON.parse(String(line));
    });
    this.#last = answered.catch(() => {});
    const answer = await answered;
    if (answer.error !== undefined) throw new Error(`the slow switch: ${answer.error}`);
    return answer;
  }
}
