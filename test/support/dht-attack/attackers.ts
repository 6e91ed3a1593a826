/** A process of its own that holds the sockets of all hostile nodes. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../../src/foundation/address.ts';
import { Random } from '../random.ts';
import { greeting, HostileAnswers, type Manner, readRequest } from './hostile-answers.ts';
import { type AttackPlan, closestPlaces, type Place } from './places.ts';

export interface AttackOrder {
  readonly plan: AttackPlan;
  readonly keys: readonly Uint8Array[];
  readonly neighbours: readonly (readonly string[])[];
  readonly misplaces: boolean;
  readonly network: string;
  readonly own: ReadonlyMap<string, Uint8Array>;
  /** Nodes near each key that make themselves known to everybody. */
  readonly callers: number;
  /** Nodes to which each of the others makes itself known. */
  readonly contacts: number;
}

export type ToAttackers =
  | { readonly kind: 'start'; readonly order: AttackOrder; readonly places: readonly Place[] }
  | { readonly kind: 'call'; readonly victims: readonly Address[] }
  | { readonly kind: 'behave'; readonly manner: Manner };

const OPENED_AT_ONCE = 200;
/** Datagrams that are sent before the victims get time to answer. */
const BURST = 400;
const BURST_PAUSE_MS = 15;

interface Attacker {
  readonly place: Place;
  readonly socket: Socket;
}

class Attack {
  readonly #order: AttackOrder;
  readonly #answers: HostileAnswers;
  readonly #places: readonly Place[];
  readonly #attackers: Attacker[] = [];
  #sent = 0;

  constructor(order: AttackOrder, places: readonly Place[]) {
    this.#order = order;
    this.#places = places;
    this.#answers = new HostileAnswers({ ...order, places });
  }

  async start(): Promise<void> {
    for (let at = 0; at < this.#places.length; at += OPENED_AT_ONCE) {
      const opened = this.#places.slice(at, at + OPENED_AT_ONCE).map((place) => this.#open(place));
      this.#attackers.push(...(await Promise.all(opened)));
    }
  }

  async #open(place: Place): Promise<Attacker> {
    const socket = createSocket('udp4');
    socket.on('message', (datagram, { address: host, port }) => {
      const request = readRequest(datagram);
      if (request === null) return;
      const answer = this.#answers.answer(place, request, { host, port });
      if (answer === null) return;
      const { delayMs } = this.#answers.manner;
      if (delayMs === 0 || request.internal) socket.send(answer, port, host);
      else setTimeout(() => socket.send(answer, port, host), delayMs);
    });
    socket.bind(place.port, place.host);
    await once(socket, 'listening');
    return { place, socket };
  }

  /** Those near the keys greet everybody, the others a few each. */
  async call(victims: readonly Address[]): Promise<void> {
    const { keys, callers, contacts, plan } = this.#order;
    const near = new Set(keys.flatMap((key) => closestPlaces(key, this.#places, callers)));
    const random = new Random(plan.seed + 2);
    for (const { place, socket } of this.#attackers) {
      const called = near.has(place) ? victims : Array.from({ length: contacts }, () => random.pick(victims));
      for (const victim of called) {
        socket.send(greeting(place, victim, this.#answers.tag), victim.port, victim.host);
        if (++this.#sent % BURST === 0) await delay(BURST_PAUSE_MS);
      }
    }
  }

  behave(manner: Manner): void {
    this.#answers.manner = manner;
  }
}

let attack: Attack | null = null;

async function obey(message: ToAttackers): Promise<void> {
  if (message.kind === 'start') {
    attack = new Attack(message.order, message.places);
    await attack.start();
  } else if (message.kind === 'call') await attack?.call(message.victims);
  else attack?.behave(message.manner);
}

// Whoever started it has come to an end.
process.on('disconnect', () => process.exit());
process.on('message', (message: ToAttackers) => {
  obey(message).then(
    () => process.connected && process.send?.('done'),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
