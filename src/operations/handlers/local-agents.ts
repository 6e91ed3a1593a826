/** The local agents of a request. */
import type { Aid } from '../../foundation/identity/aid.ts';

export interface ActingAgent {
  /** The acting local agent: the named one, or the only one. See docs/concepts.md. */
  readonly localAid: (named: Aid | undefined) => Aid;
}

export interface OwnAgents {
  /** @throws SvcError `not_found` if the agent is not registered here */
  readonly requireAgent: (aid: Aid) => Aid;
}
