/** A separate process that holds the sockets of all hostile nodes. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { Random } from '../random.ts';
import { type Behavior, encodePing, HostileNodes, readRequest } from './hostile-node.ts';
import { type AttackPlan, closestPositions, type Position } from './positions.ts';

export interface AttackSetup {
  readonly plan: AttackPlan;
  readonly keys: readonly Uint8Array[];
  readonly nearNetworks: readonly (readonly string[])[];
  readonly reportsWrongAddress: boolean;
  readonly network: string;
  readonly own: ReadonlyMap<string, Uint8Array>;
  /** Nodes near each key that ping every victim. */
  readonly pingers: number;
  /** Number of victims that each other hostile node pings. */
  readonly pingsEach: number;
}

export type ToAttackers =
  | { readonly kind: 'start'; readonly setup: AttackSetup; readonly positions: readonly Position[] }
  | { readonly kind: 'ping'; readonly victims: readonly Address[] }
  | { readonly kind: 'behave'; readonly behavior: Behavior };

const OPENED_AT_ONCE = 200;
/** Datagrams to send before a pause in which the victims can answer. */
const BURST = 400;
const BURST_PAUSE_MS = 15;

interface Attacker {
  readonly position: Position;
  readonly socket: Socket;
}

class Attack {
  readonly #setup: AttackSetup;
  readonly #answers: HostileNodes;
  readonly #positions: readonly Position[];
  readonly #attackers: Attacker[] = [];
  #sent = 0;

  constructor(setup: AttackSetup, positions: readonly Position[]) {
    this.#setup = setup;
    this.#positions = positions;
    this.#answers = new HostileNodes({ ...setup, positions });
  }

  async start(): Promise<void> {
    for (let at = 0; at < this.#positions.length; at += OPENED_AT_ONCE) {
      const opened = this.#positions.slice(at, at + OPENED_AT_ONCE).map((position) => this.#open(position));
      this.#attackers.push(...(await Promise.all(opened)));
    }
  }

  async #open(position: Position): Promise<Attacker> {
    const socket = createSocket('udp4');
    socket.on('message', (datagram, { address: host, port }) => {
      const request = readRequest(datagram);
      if (request === null) return;
      const answer = this.#answers.answer(position, request, { host, port });
      if (answer === null) return;
      const { delayMs } = this.#answers.behavior;
      if (delayMs === 0 || request.internal) socket.send(answer, port, host);
      else setTimeout(() => socket.send(answer, port, host), delayMs);
    });
    socket.bind(position.port, position.host);
    await once(socket, 'listening');
    return { position, socket };
  }

  /** Hostile nodes near the keys ping every victim, other hostile nodes ping a few. */
  async ping(victims: readonly Address[]): Promise<void> {
    const { keys, pingers, pingsEach, plan } = this.#setup;
    const near = new Set(keys.flatMap((key) => closestPositions(key, this.#positions, pingers)));
    const random = new Random(plan.seed + 2);
    for (const { position, socket } of this.#attackers) {
      const targets = near.has(position) ? victims : Array.from({ length: pingsEach }, () => random.pick(victims));
      for (const victim of targets) {
        socket.send(encodePing(position, victim, this.#answers.tag), victim.port, victim.host);
        if (++this.#sent % BURST === 0) await delay(BURST_PAUSE_MS);
      }
    }
  }

  behave(behavior: Behavior): void {
    this.#answers.behavior = behavior;
  }
}

let attack: Attack | null = null;

async function handle(message: ToAttackers): Promise<void> {
  if (message.kind === 'start') {
    attack = new Attack(message.setup, message.positions);
    await attack.start();
  } else if (message.kind === 'ping') await attack?.ping(message.victims);
  else attack?.behave(message.behavior);
}

// The parent process has exited.
process.on('disconnect', () => process.exit());
process.on('message', (message: ToAttackers) => {
  handle(message).then(
    () => process.connected && process.send?.('done'),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
