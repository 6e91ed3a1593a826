/**
 * Whether the network still has what was published here. A node that comes back to where it was brings nothing out anew;
 * but those who kept its records may have been replaced meanwhile, and nobody would find its agents until their renewal.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { agentKey } from '../../foundation/records/keys.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { PublicationStore } from '../../foundation/store/publications.ts';
import type { Records } from './types.ts';

/** Agents that the network is asked about. */
const SAMPLES = 8;
/** Agents that they are taken from, at most. */
const MAX_CANDIDATE_AGENTS = 10_000;
/** Records that run out sooner may be gone by the clocks of others, milliseconds. */
const MIN_LIFE_LEFT_MS = 300_000;

interface RemembranceDependencies {
  readonly network: Pick<Records, 'holders'>;
  readonly publications: Pick<PublicationStore, 'settledPublishers'>;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  random(): number;
}

export class PresenceCheck {
  readonly #deps: RemembranceDependencies;

  constructor(dependencies: RemembranceDependencies) {
    this.#deps = dependencies;
  }

  /** Asks after some of what should be there: true where nodes answer that should have one of them, and none has it. */
  async isLost(): Promise<boolean> {
    const answers = await Promise.all(
      this.#sample().map((aid) => this.#deps.network.holders(agentKey(aid), RECORD.endpoints)),
    );
    return answers.some(({ answered, holding }) => answered > 0 && holding === 0);
  }

  #sample(): Aid[] {
    const { publications, clock } = this.#deps;
    const all = publications.settledPublishers(clock.now(), clock.now() + MIN_LIFE_LEFT_MS, MAX_CANDIDATE_AGENTS);
    const first = Math.floor(this.#deps.random() * all.length);
    const step = Math.max(1, Math.floor(all.length / SAMPLES));
    const places = Array.from({ length: Math.min(SAMPLES, all.length) }, (_, i) => (first + i * step) % all.length);
    return places.flatMap((place) => all[place] ?? []);
  }
}
