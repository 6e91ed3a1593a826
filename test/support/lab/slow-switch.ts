/**
 * A lab switch that delays and drops packets, controlled by a test. Needs `/dev/net/tun` and a Node with `node:ffi`.
 */
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Machine } from './namespaces.ts';

const PROCESS = fileURLToPath(new URL('slow-switch-process.ts', import.meta.url));

/** The treatment of packets of one port. */
export interface Slowness {
  /** One-way delay from this port, milliseconds. A round trip adds the delays of both ports. */
  readonly delayMs: number;
  /** Share of dropped packets, 0 to 1. */
  readonly loss: number;
}

/** Packets received from a port. */
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
  /** Ports by the process of their machine. */
  readonly #ports = new Map<number, number>();
  #last: Promise<unknown> = Promise.resolve();

  /** @param place a machine in the same world as all machines to connect */
  constructor(place: Machine, slowness: Slowness) {
    const child = place.converse(process.execPath, ['--disable-warning=ExperimentalWarning', PROCESS]);
    this.#order = (line) => void child.stdin.write(line);
    this.#answers = createInterface({ input: child.stdout });
    this.#slowness = slowness;
  }

  /** Gives a machine an interface that is connected to the switch. */
  async plug(machine: Machine, name: string): Promise<void> {
    const { port = 0 } = await this.#ask({ do: 'plug', pid: machine.pid, interface: name });
    this.#ports.set(machine.pid, port);
    await this.slow(machine, this.#slowness);
  }

  /** Changes the treatment of a machine's packets. */
  async slow(machine: Machine, { delayMs, loss }: Slowness): Promise<void> {
    await this.#ask({ do: 'set', port: this.#portOf(machine), delayMs, loss });
  }

  /** Packets that a machine has sent. */
  async use(machine: Machine): Promise<PortUse> {
    const { use = { packets: 0, bytes: 0, lost: 0 } } = await this.#ask({ do: 'use', port: this.#portOf(machine) });
    return use;
  }

  #portOf(machine: Machine): number {
    const port = this.#ports.get(machine.pid);
    if (port === undefined) throw new Error(`${machine.name} is not connected to the switch`);
    return port;
  }

  /** One command at a time, because responses do not name their command. */
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
