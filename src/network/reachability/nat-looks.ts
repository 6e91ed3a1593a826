/** Finds out, again and again, what stands between this node and the Internet: a laptop moves, and routers change. */
import type { Clock } from '../../foundation/clock.ts';
import type { NatMapping } from '../../foundation/domain/directory.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask, UNTIL_REQUESTED } from '../../foundation/repeat.ts';

/** From one look to the next, milliseconds. */
export const NAT_LOOK_MS: number = 10 * 60_000;
/** The same where too few others have said what they see. */
export const NAT_LOOK_AGAIN_MS = 60_000;

interface NatLooksDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** False where strangers reach this node as it is, and while nothing is known of the network. */
  readonly isNeeded: () => boolean;
  readonly look: () => Promise<NatMapping>;
  readonly found: (mapping: NatMapping) => void;
}

export class NatLooks implements Component {
  readonly #deps: NatLooksDependencies;
  #looks: RepeatingTask | null = null;

  constructor(dependencies: NatLooksDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'nobody says how a port of ours is seen');
    this.#looks = every(this.#deps.clock, { periodMs: NAT_LOOK_AGAIN_MS, onError }, () => this.#look());
  }

  async stop(): Promise<void> {
    this.#looks?.stop();
    await this.#looks?.idle();
  }

  /** To be called when what is known of the network has changed. */
  onNetwork(): void {
    this.#looks?.soon();
  }

  async #look(): Promise<number> {
    const { isNeeded, look, found } = this.#deps;
    if (!isNeeded()) return UNTIL_REQUESTED;
    const mapping = await look();
    found(mapping);
    return mapping === 'unknown' ? NAT_LOOK_AGAIN_MS : NAT_LOOK_MS;
  }
}
