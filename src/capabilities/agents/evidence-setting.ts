/**
 * Which agents sign evidence for their calls. Every call reads this setting, so it is cached until the agent changes.
 */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { AgentStore } from '../../foundation/store/agents.ts';
import type { AgentRegistry } from './registry.ts';

const MAX_CACHED = 1024;

export class EvidenceSetting {
  readonly #agents: AgentStore;
  readonly #registry: Pick<AgentRegistry, 'get'>;
  readonly #known = new LruCache<Aid, boolean>({ maxEntries: MAX_CACHED });

  constructor(agents: AgentStore, registry: Pick<AgentRegistry, 'get' | 'onChange'>) {
    this.#agents = agents;
    this.#registry = registry;
    registry.onChange(({ aid }) => {
      this.#known.delete(aid);
    });
  }

  /** Also false for the node itself and for agents that are not registered here. */
  isOn(aid: Aid): boolean {
    const known = this.#known.get(aid);
    if (known !== undefined) return known;
    const isOn = this.#agents.givesEvidence(aid);
    this.#known.set(aid, isOn);
    return isOn;
  }

  /** @throws SvcError `not_found` */
  get(aid: Aid): boolean {
    return this.isOn(this.#registry.get(aid).aid);
  }

  /** Takes effect with the next call. @throws SvcError `not_found` */
  set(aid: Aid, isOn: boolean): void {
    this.#agents.setEvidence(this.#registry.get(aid).aid, isOn);
    this.#known.delete(aid);
  }
}
