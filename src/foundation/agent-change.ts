import type { Aid } from './identity/aid.ts';

/** A change of a local agent. */
export interface AgentChange {
  readonly aid: Aid;
  /** `registered`: registered for the first time or again. `rotated`: new key or delegation. `bound`: new service. */
  readonly kind: 'registered' | 'rotated' | 'bound' | 'deleted';
}
