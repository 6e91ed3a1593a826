/** Caches what every call reads about local agents, until an agent changes. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { parseServiceAddress, type ServiceAddress } from '../../foundation/service-address.ts';
import type { AgentRegistry } from './registry.ts';

const MAX_SERVICES = 1024;

export class AgentCache {
  readonly #registry: Pick<AgentRegistry, 'service' | 'list'>;
  readonly #services = new LruCache<Aid, ServiceAddress | null>({ maxEntries: MAX_SERVICES });
  #first: { readonly limit: number; readonly aids: readonly Aid[] } | null = null;

  constructor(registry: Pick<AgentRegistry, 'service' | 'list' | 'onChange'>) {
    this.#registry = registry;
    registry.onChange(({ aid }) => {
      this.#services.delete(aid);
      this.#first = null;
    });
  }

  /** The service address of an agent. Null if it has no service or is not registered here. */
  service(aid: Aid): ServiceAddress | null {
    const known = this.#services.get(aid);
    if (known !== undefined) return known;
    const text = this.#registry.service(aid);
    const service = text === '' ? null : parseServiceAddress(text);
    this.#services.set(aid, service);
    return service;
  }

  /** Up to `limit` agents, in the order of their registration. */
  first(limit: number): readonly Aid[] {
    if (this.#first?.limit !== limit)
      this.#first = { limit, aids: this.#registry.list(limit).agents.map(({ aid }) => aid) };
    return this.#first.aids;
  }
}
