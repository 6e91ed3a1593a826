/** What has been acquired, in order: released in the opposite order, each of it whatever the others do. */
import type { Component } from '../foundation/lifecycle.ts';

export class Life {
  readonly #releases: (() => unknown)[] = [];

  /** Runs `release` at the end. */
  defer(release: () => unknown): void {
    this.#releases.push(release);
  }

  /** Starts a component, and stops it at the end even where the start fails. */
  async start(component: Component): Promise<void> {
    this.defer(() => component.stop());
    await component.start();
  }

  /** Releases everything; throws the first failure after all have been tried. */
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
