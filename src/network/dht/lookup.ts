/**
 * The iterative search for the nodes closest to a key. Several nodes are asked at once, each answer
 * names closer ones, and nobody is waited for who takes much longer than the others.
 */

import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { Tally } from '../../foundation/tally.ts';
import type { FindReply } from './messages.ts';
import { compareDistance, nodeId, nodeScope } from './node-address.ts';
import { FAILURES_TO_DROP, type PeerHealth } from './peer-health.ts';
import { MAX_NODES_PER_HOST, mayHoldMany } from './routing-admission.ts';

/** Most nodes that one lookup asks, whatever the answers claim. */
const MAX_ASKED = 80;
/** Most nodes that one lookup remembers. */
const MAX_CANDIDATES = 240;
/** How much longer slow nodes get while there are not enough answers, ms. */
const PATIENCE_MS = 300;

/** What a node said. */
export interface LookupAnswer {
  readonly address: Address;
  readonly id: Uint8Array;
  readonly reply: FindReply;
  /** Proves our address to this node for a few seconds. */
  readonly token: Uint8Array | null;
}

/** A node on the way to the key. `slow` and `late` ones may still answer, and count no longer. */
interface Candidate {
  readonly address: Address;
  readonly id: Uint8Array;
  state: 'new' | 'asked' | 'slow' | 'late' | 'answered' | 'failed';
  answer: LookupAnswer | null;
}

export interface LookupOptions {
  readonly target: Uint8Array;
  /** How many of the closest nodes must have answered. */
  readonly width: number;
  /** How many are asked at once. */
  readonly parallel: number;
  /** Answers with which slow nodes are no longer waited for. */
  readonly enough: number;
  readonly start: readonly Address[];
}

interface LookupDependencies {
  readonly clock: Clock;
  readonly health: PeerHealth;
  /** Asks one node; null where it does not answer. */
  readonly ask: (address: Address, id: Uint8Array) => Promise<LookupAnswer | null>;
  /** Whom not to ask: ourselves, and who is out of reach. */
  readonly skips: (address: Address) => boolean;
  readonly isOwnHost: (host: string) => boolean;
  /** Told of each answer, late ones included. */
  readonly onAnswer: (answer: LookupAnswer) => void;
}

function counts({ state }: Candidate): boolean {
  return state === 'new' || state === 'asked' || state === 'answered';
}

export class Lookup {
  readonly #options: LookupOptions;
  readonly #deps: LookupDependencies;
  /** By distance, closest first. */
  readonly #candidates: Candidate[] = [];
  readonly #known = new Set<string>();
  readonly #hosts = new Tally();
  #asked = 0;
  #answered = 0;
  #stopped = false;
  readonly #end = Promise.withResolvers<void>();
  /** Settles when the closest nodes have answered, or nobody is left to wait for, or it was stopped. */
  readonly finished: Promise<void> = this.#end.promise;

  constructor(options: LookupOptions, dependencies: LookupDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    for (const address of options.start) this.#add(address);
    this.#step();
  }

  /** Ends the search; answers that are still under way are reported no more. */
  stop(): void {
    this.#stopped = true;
    this.#end.resolve();
  }

  /** The closest nodes that have answered, closest first. */
  closest(max: number): LookupAnswer[] {
    const answers = this.#candidates.map(({ answer }) => answer);
    return answers.filter((answer) => answer !== null).slice(0, max);
  }

  /** How many known nodes are closer to the target than `id`, without those that take too long. */
  rank(id: Uint8Array): number {
    const { target } = this.#options;
    let rank = 0;
    for (const candidate of this.#candidates) {
      if (compareDistance(target, candidate.id, id) >= 0) break;
      if (counts(candidate)) rank++;
    }
    return rank;
  }

  #add(address: Address): void {
    const key = formatAddress(address);
    if (this.#known.has(key) || this.#candidates.length >= MAX_CANDIDATES || this.#deps.skips(address)) return;
    if (this.#deps.health.failures(address) >= FAILURES_TO_DROP) return;
    if (this.#hosts.of(address.host) >= MAX_NODES_PER_HOST && !mayHoldMany(address.host, this.#deps.isOwnHost)) return;
    this.#hosts.add(address.host);
    this.#known.add(key);
    const { target } = this.#options;
    const id = nodeId(address);
    const before = this.#candidates.findLastIndex((other) => compareDistance(target, other.id, id) < 0);
    this.#candidates.splice(before + 1, 0, { address, id, state: 'new', answer: null });
  }

  #step(): void {
    if (this.#stopped) return;
    const { width, parallel, enough } = this.#options;
    let active = this.#candidates.filter(({ state }) => state === 'asked').length;
    let open = 0;
    let waiting = 0;
    let window = 0;
    for (const candidate of this.#candidates) {
      if (window >= width) break;
      if (candidate.state === 'new' && active < parallel && this.#asked < MAX_ASKED) {
        this.#visit(candidate);
        active++;
      }
      if (candidate.state === 'slow') waiting++;
      if (candidate.state === 'asked' || (candidate.state === 'new' && this.#asked < MAX_ASKED)) open++;
      if (counts(candidate)) window++;
    }
    if (open === 0 && (waiting === 0 || this.#answered >= enough)) this.#end.resolve();
  }

  #visit(candidate: Candidate): void {
    const { clock, health, ask, onAnswer } = this.#deps;
    this.#asked++;
    candidate.state = 'asked';
    let timer: Timer;
    const setAside = (): void => {
      candidate.state = 'slow';
      timer = clock.after(PATIENCE_MS, () => {
        candidate.state = 'late';
        this.#step();
      });
    };
    if (health.failures(candidate.address) > 0) setAside();
    else
      timer = clock.after(health.slowAfterMs, () => {
        setAside();
        this.#step();
      });
    detach(
      ask(candidate.address, candidate.id).then((answer) => {
        timer.cancel();
        candidate.state = answer === null ? 'failed' : 'answered';
        if (this.#stopped) return;
        if (answer !== null) {
          candidate.answer = answer;
          this.#answered++;
          const scope = nodeScope(candidate.address.host);
          for (const node of answer.reply.nodes) if (nodeScope(node.host) >= scope) this.#add(node);
          onAnswer(answer);
        }
        this.#step();
      }),
    );
  }
}
