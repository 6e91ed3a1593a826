/**
 * Lifecycle of the daemon: acquired resources, and components that start in stages. Everything is stopped in reverse
 * order.
 */
import type { Component } from '../foundation/lifecycle.ts';

/** Time limit for stopping, in milliseconds. Then the process exits with code 1. */
export const STOP_TIMEOUT_MS = 15_000;

/** Stops or restarts the process from inside. */
export interface ProcessControl {
  /** Stops the process cleanly. */
  readonly stop: (reason: string) => void;
  /** Has the supervisor restart this process; null if there is no supervisor. */
  readonly restart: (() => void) | null;
}

/**
 * Start order. Components that respond to other nodes start before the network, and components that act on their own
 * start after it. The API is last, so its clients find everything running.
 */
const STAGES = ['answering', 'network', 'acting', 'api'] as const;

export type Stage = (typeof STAGES)[number];

export class Life {
  readonly #parts: { readonly stage: Stage; readonly part: Component }[] = [];
  readonly #releases: (() => unknown)[] = [];

  /** Runs `release` when the daemon stops. */
  defer(release: () => unknown): void {
    this.#releases.push(release);
  }

  /** Registers a component for `begin`, which starts it in its stage, in the order of registration. */
  add(stage: Stage, part: Component): void {
    this.#parts.push({ stage, part });
  }

  /** Starts the registered components. */
  async begin(): Promise<void> {
    for (const stage of STAGES) for (const one of this.#parts) if (one.stage === stage) await this.start(one.part);
  }

  /** Starts a component now, and stops it with the daemon even if the start fails. */
  async start(component: Component): Promise<void> {
    this.defer(() => component.stop());
    await component.start();
  }

  /** Releases everything, even if some steps fail. Throws the first failure at the end. */
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
