/** What each call asks of the agents here, remembered until one of them changes. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { parseServiceAddress, type ServiceAddress } from '../../foundation/service-address.ts';
import type { AgentRegistry } from './registry.ts';

/** Agents whose services are remembered. */
const MAX_SERVICES = 1024;

export class RememberedAgents {
  readonly #registry: Pick<AgentRegistry, 'service' | 'list'>;
  readonly #services = new LruCache<Aid, ServiceAddress | null>({ maxEntries: MAX_SERVICES });
  #first: { readonly limit: number; readonly aids: readonly Aid[] } | null = null;

  constructor(registry: Pick<AgentRegistry, 'service' | 'list' | 'onChange'>) {
    this.#registry = registry;
    registry.onChange(({ aid, kind }) => {
      // As often as there are calls, and it changes neither.
      if (kind === 'alive') return;
      this.#services.delete(aid);
      this.#first = null;
    });
  }

  /** Where the service of an agent is; null where none is bound, or the agent is not here. */
  service(aid: Aid): ServiceAddress | null {
    const known = this.#services.get(aid);
    if (known !== undefined) return known;
    const text = this.#registry.service(aid);
    const service = text === '' ? null : parseServiceAddress(text);
    this.#services.set(aid, service);
    return service;
  }

  /** The first agents in the order of their registration, at most `limit`. */
  first(limit: number): readonly Aid[] {
    if (this.#first?.limit !== limit)
      this.#first = { limit, aids: this.#registry.list(limit).agents.map(({ aid }) => aid) };
    return this.#first.aids;
  }
}
