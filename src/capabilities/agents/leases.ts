/** Temporary agents: each is deleted when the program that registered it no longer follows its events. */
import type { Timer } from '../../foundation/clock.ts';
import { LEASE_GRACE_MS } from '../../foundation/domain/agents.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';

const KEY = 'temporary_agents';

export interface LeaseDependencies extends NodeParts {
  readonly storage: { get(key: string): unknown; set(key: string, value: readonly string[]): void };
  /** Deletes an agent. @throws SvcError `not_found` */
  readonly remove: (aid: Aid) => void;
}

export class AgentLeases implements Component {
  readonly #deps: LeaseDependencies;
  readonly #agents: Set<Aid>;
  /** Open event streams of each temporary agent. */
  readonly #streams = new Map<Aid, number>();
  readonly #timers = new Map<Aid, Timer>();
  #isRunning = false;

  constructor(dependencies: LeaseDependencies) {
    this.#deps = dependencies;
    const stored = dependencies.storage.get(KEY);
    const aids = Array.isArray(stored) ? stored.filter((aid) => typeof aid === 'string') : [];
    this.#agents = new Set(aids.map((aid) => parseAid(aid)));
  }

  async start(): Promise<void> {
    this.#isRunning = true;
    for (const aid of this.#agents) this.#expire(aid);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  /** Makes a new agent temporary. Call it in the transaction that stores the agent. */
  add(aid: Aid): void {
    this.#agents.add(aid);
    this.#store();
    if (this.#isRunning) this.#expire(aid);
  }

  /** An event stream of an agent opened. @returns a function to call when it has closed */
  follow(aid: Aid): () => void {
    this.#timers.get(aid)?.cancel();
    this.#streams.set(aid, (this.#streams.get(aid) ?? 0) + 1);
    return () => {
      const left = (this.#streams.get(aid) ?? 1) - 1;
      if (left > 0) this.#streams.set(aid, left);
      else this.#streams.delete(aid);
      if (left === 0 && this.#isRunning && this.#agents.has(aid)) this.#expire(aid);
    };
  }

  /** Handles the deletion of an agent. */
  forget(aid: Aid): void {
    this.#timers.get(aid)?.cancel();
    this.#timers.delete(aid);
    if (this.#agents.delete(aid)) this.#store();
  }

  #expire(aid: Aid): void {
    this.#timers.get(aid)?.cancel();
    if (this.#streams.has(aid)) return;
    const timer = this.#deps.clock.after(LEASE_GRACE_MS, () => this.#end(aid));
    this.#timers.set(aid, timer);
  }

  #end(aid: Aid): void {
    this.#timers.delete(aid);
    try {
      this.#deps.remove(aid);
      this.#deps.log.info({ aid }, 'a temporary agent was deleted, because its program ended');
    } catch (error) {
      // A crash before the registration.
      if (error instanceof SvcError && error.code === 'not_found') return this.forget(aid);
      this.#deps.log.error({ aid, error }, 'a temporary agent could not be deleted, svcd will retry');
      this.#expire(aid);
    }
  }

  #store(): void {
    this.#deps.storage.set(KEY, [...this.#agents]);
  }
}
