/** Controls the process of the attackers. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Address } from '../../../src/foundation/address.ts';
import type { AttackSetup, ToAttackers } from './attackers.ts';
import type { Behavior } from './hostile-node.ts';
import { attackPositions, type Position } from './positions.ts';

export class AttackProcess {
  readonly #child: ChildProcess = fork(new URL('./attackers.ts', import.meta.url), { serialization: 'advanced' });
  readonly #setup: AttackSetup;
  /** Positions of the hostile nodes. */
  readonly positions: readonly Position[];

  constructor(setup: AttackSetup) {
    this.#setup = setup;
    this.positions = attackPositions(setup.plan, setup.keys);
  }

  /** Opens their sockets. */
  async start(): Promise<void> {
    await this.#tell({ kind: 'start', setup: this.#setup, positions: this.positions });
  }

  /** Makes them ping the victims. */
  async ping(victims: readonly Address[]): Promise<void> {
    await this.#tell({ kind: 'ping', victims });
  }

  async behave(behavior: Behavior): Promise<void> {
    await this.#tell({ kind: 'behave', behavior });
  }

  [Symbol.dispose](): void {
    this.#child.disconnect();
  }

  async #tell(message: ToAttackers): Promise<void> {
    this.#child.send(message);
    await once(this.#child, 'message');
  }
}
