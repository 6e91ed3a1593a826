/**
 * Looks for nodes at other addresses than those at which they are dialled. A node that has started again may be at
 * another port, and whoever dials the one before hears nothing for seconds: so the network is asked for a newer record
 * meanwhile, again and again, and where it leads elsewhere that is dialled too.
 */

import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodePlace } from './dial.ts';
import { knownOf } from './dials.ts';

/** So long a node is dialled before it is looked for, and from the end of one look to the next: milliseconds. */
export const LOOK_ELSEWHERE_MS = 1_000;
/** Nodes that are looked for at once: where this machine has lost its network, all of them seem to be gone. */
export const MAX_LOOKED_FOR = 8;

interface ElsewhereDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Where a node is by what its newest record says; null where nobody knows. */
  readonly locate: (nodeKey: Uint8Array, signal: AbortSignal) => Promise<NodePlace | null>;
  /** Begins to dial a node at a place, for those who wait for it. */
  readonly dial: (place: NodePlace, relays: boolean, signal: AbortSignal) => Promise<unknown>;
}

interface SeekOptions {
  readonly relays: boolean;
  /** What stood to the node is dead: it is looked for at once. */
  readonly isLost: boolean;
}

/** A node that is dialled. */
interface Sought {
  readonly nodeKey: Uint8Array;
  readonly relays: boolean;
  /** As `knownOf` names them. */
  readonly known: Set<string>;
  readonly end: AbortController;
  readonly looks: RepeatingTask;
  waiters: number;
  isLookedFor: boolean;
}

export class Relocation {
  readonly #deps: ElsewhereDependencies;
  /** By the hex of the node's key, and whether it may be reached by a relay. */
  readonly #sought = new Map<string, Sought>();
  #looking = 0;

  constructor(dependencies: ElsewhereDependencies) {
    this.#deps = dependencies;
  }

  /** To be called by who begins to wait for a node that is dialled at a place. Returns how to end that. */
  seek(place: NodePlace, { relays, isLost }: SeekOptions): () => void {
    const name = `${toHex(place.nodeKey)} ${relays}`;
    const sought = this.#sought.get(name) ?? this.#begin(place.nodeKey, relays);
    this.#sought.set(name, sought);
    sought.waiters++;
    for (const one of knownOf(place)) sought.known.add(one);
    if (isLost && !sought.isLookedFor) sought.looks.soon();
    return () => {
      sought.waiters--;
      if (sought.waiters > 0) return;
      this.#sought.delete(name);
      sought.looks.stop();
      sought.end.abort(new SvcError('cancelled'));
    };
  }

  #begin(nodeKey: Uint8Array, relays: boolean): Sought {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'a node that is dialled was not found');
    const looks = every(this.#deps.clock, { periodMs: LOOK_ELSEWHERE_MS, onError }, () => this.#look(sought));
    const sought: Sought = {
      ...{ nodeKey, relays, looks },
      known: new Set(),
      end: new AbortController(),
      waiters: 0,
      isLookedFor: false,
    };
    return sought;
  }

  async #look(sought: Sought): Promise<void> {
    if (this.#looking >= MAX_LOOKED_FOR) return;
    const { nodeKey, relays, known, end } = sought;
    sought.isLookedFor = true;
    this.#looking++;
    let place: NodePlace | null;
    try {
      place = await this.#deps.locate(nodeKey, end.signal);
    } finally {
      this.#looking--;
    }
    if (place === null || end.signal.aborted) return;
    const names = knownOf(place);
    if (names.every((one) => known.has(one))) return;
    for (const one of names) known.add(one);
    this.#deps.log.debug({ node: toHex(nodeKey) }, 'a node that does not answer has said that it is elsewhere');
    // Whoever waits gets the connection, or hears of the failure where it was dialled first.
    detach(this.#deps.dial(place, relays, end.signal).catch(() => {}));
  }
}
