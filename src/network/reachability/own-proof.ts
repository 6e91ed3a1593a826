/**
 * Finds out at which of its addresses a node is reached from outside: others dial back to where they see it. What a
 * router or the record network says of the QUIC port is a guess until then.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { Log } from '../../foundation/log.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodeAt } from '../node-requests.ts';
import type { HelperReply } from './signals.ts';

/** How often is looked whether there is another address, milliseconds. */
const LOOK_MS = 5_000;
/** After so long an address is dialled once more, where others have reached it and where they have not: milliseconds. */
export const PROVEN_AGAIN_MS: number = 30 * 60_000;
export const REFUTED_AGAIN_MS: number = 10 * 60_000;
/** The same where nobody could be asked. */
export const UNANSWERED_AGAIN_MS = 60_000;
/** Addresses that are proven. */
const MAX_PROVEN = 3;
/** So many nodes have to fail where more are there, before an address counts as one that leads nowhere. */
const REFUTING_NODES = 2;

interface OwnProofDependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Addresses on the Internet that may lead to our QUIC port; none while nothing is known of the network. */
  readonly candidates: () => readonly Address[];
  /** Nodes that may be asked, each in another network. */
  readonly nodes: () => Promise<readonly NodeAt[]>;
  /** Has a node dial the port at the host where it sees us. */
  readonly ask: (node: NodeAt, port: number) => Promise<HelperReply>;
  /** Told whether others have reached us, by address; those of which nobody knows are not in it. */
  readonly found: (verdicts: ReadonlyMap<string, boolean>) => void;
}

interface Verdict {
  readonly isReached: boolean | null;
  readonly at: number;
  readonly until: number;
}

export class OwnProof implements Component {
  readonly #deps: OwnProofDependencies;
  /** By address. */
  #verdicts = new Map<string, Verdict>();
  #told = '[]';
  #looks: RepeatingTask | null = null;

  constructor(dependencies: OwnProofDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void => this.#deps.log.debug({ error }, 'nobody says whether we are reached');
    this.#looks = every(this.#deps.clock, { periodMs: LOOK_MS, onError }, () => this.#look());
  }

  /** A question under way ends with the connections. */
  async stop(): Promise<void> {
    this.#looks?.stop();
  }

  /** When another node last reached this one at an address, Unix milliseconds; null if the last attempt failed. */
  reachedAt(address: Address): number | null {
    const verdict = this.#verdicts.get(formatAddress(address));
    return verdict?.isReached === true ? verdict.at : null;
  }

  async #look(): Promise<void> {
    const { candidates, nodes, clock } = this.#deps;
    const all = candidates().slice(0, MAX_PROVEN);
    const names = new Set(all.map(formatAddress));
    this.#verdicts = new Map([...this.#verdicts].filter(([name]) => names.has(name)));
    const due = all.filter((one) => (this.#verdicts.get(formatAddress(one))?.until ?? 0) <= clock.now());
    const asked = due.length > 0 ? await nodes() : [];
    for (const address of due) {
      const isReached = await this.#isReached(address, asked);
      const again = { true: PROVEN_AGAIN_MS, false: REFUTED_AGAIN_MS, null: UNANSWERED_AGAIN_MS }[`${isReached}`];
      const at = clock.now();
      this.#verdicts.set(formatAddress(address), { isReached, at, until: at + again });
    }
    this.#tell();
  }

  /** Null where nobody knows. */
  async #isReached({ host, port }: Address, nodes: readonly NodeAt[]): Promise<boolean | null> {
    let failed = 0;
    for (const node of nodes) {
      if (failed >= REFUTING_NODES) break;
      try {
        const reply = await this.#deps.ask(node, port);
        // Who sees us elsewhere has dialled that, and knows nothing of this address.
        if (reply.seenAt.host !== host) continue;
        if (reply.reached) return true;
        failed++;
      } catch (error) {
        this.#deps.log.debug({ error }, 'a node does not say whether it reaches us');
      }
    }
    return failed > 0 ? false : null;
  }

  #tell(): void {
    const known = new Map<string, boolean>();
    for (const [name, { isReached }] of this.#verdicts) if (isReached !== null) known.set(name, isReached);
    const text = JSON.stringify([...known]);
    if (text === this.#told) return;
    this.#told = text;
    this.#deps.found(known);
  }
}
