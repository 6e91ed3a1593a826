/** The life of the daemon: what was acquired, and the parts that start in stages; all of it ends in the opposite order. */
import type { Component } from '../foundation/lifecycle.ts';

/** A stop that takes longer than this is given up, milliseconds: the process ends with code 1, and none stays behind. */
export const STOP_TIMEOUT_MS = 15_000;

/** How the process is ended from within. */
export interface Ending {
  /** Ends it cleanly. */
  readonly stop: (reason: string) => void;
  /** Has who runs it end it and start it anew; null where nobody does. */
  readonly restart: (() => void) | null;
}

/**
 * When a part starts. What answers other nodes is there before the network brings them, and what acts by
 * itself begins once there is a network. The API is last: whoever reaches it finds everything behind it.
 */
const STAGES = ['answering', 'network', 'acting', 'api'] as const;

export type Stage = (typeof STAGES)[number];

export class Life {
  readonly #parts: { readonly stage: Stage; readonly part: Component }[] = [];
  readonly #releases: (() => unknown)[] = [];

  /** Runs `release` at the end. */
  defer(release: () => unknown): void {
    this.#releases.push(release);
  }

  /** Has `begin` start a part in its stage, after those of the stage that were added before. */
  add(stage: Stage, part: Component): void {
    this.#parts.push({ stage, part });
  }

  /** Starts what was added. */
  async begin(): Promise<void> {
    for (const stage of STAGES) for (const one of this.#parts) if (one.stage === stage) await this.start(one.part);
  }

  /** Starts a component now, and stops it at the end even where the start fails. */
  async start(component: Component): Promise<void> {
    this.defer(() => component.stop());
    await component.start();
  }

  /** Releases everything, each of it whatever the others do; throws the first failure after all have been tried. */
  async end(): Promise<void> {
    const failures: unknown[] = [];
    for (const release of this.#releases.splice(0).reverse()) {
      try {
        await release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
