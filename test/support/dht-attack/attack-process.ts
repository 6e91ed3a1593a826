/** The process of the attackers, from outside. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Address } from '../../../src/foundation/address.ts';
import type { AttackOrder, ToAttackers } from './attackers.ts';
import type { Manner } from './hostile-answers.ts';
import { attackPlaces, type Place } from './places.ts';

export class AttackProcess {
  readonly #child: ChildProcess = fork(new URL('./attackers.ts', import.meta.url), { serialization: 'advanced' });
  readonly #order: AttackOrder;
  /** Where the attackers stand. */
  readonly places: readonly Place[];

  constructor(order: AttackOrder) {
    this.#order = order;
    this.places = attackPlaces(order.plan, order.keys);
  }

  /** Opens all of their sockets. */
  async start(): Promise<void> {
    await this.#tell({ kind: 'start', order: this.#order, places: this.places });
  }

  /** Has them make themselves known. */
  async call(victims: readonly Address[]): Promise<void> {
    await this.#tell({ kind: 'call', victims });
  }

  async behave(manner: Manner): Promise<void> {
    await this.#tell({ kind: 'behave', manner });
  }

  [Symbol.dispose](): void {
    this.#child.disconnect();
  }

  async #tell(message: ToAttackers): Promise<void> {
    this.#child.send(message);
    await once(this.#child, 'message');
  }
}
