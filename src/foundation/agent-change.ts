import type { Aid } from './identity/aid.ts';

/** What happened to a local agent. */
export interface AgentChange {
  readonly aid: Aid;
  /**
   * `registered`: new here, or registered again; `rotated`: it got another key or delegation;
   * `bound`: its service changed; `alive`: a heartbeat.
   */
  readonly kind: 'registered' | 'rotated' | 'bound' | 'alive' | 'deleted';
}
