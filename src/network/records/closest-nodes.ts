/**
 * The iterative search for the nodes closest to a key, for reads and writes. It asks several nodes at once, and each
 * answer names closer nodes. It does not wait for nodes that are much slower than other nodes. Of each block of public
 * addresses one node counts (`node-address.ts`), so an attacker with many addresses in a few blocks cannot fill the
 * closest places. If the closest nodes are much denser than the nodes behind them, the search continues beyond them.
 * Nodes that name unresponsive nodes soon lose their influence.
 */

import { type Address, formatAddress } from '../../foundation/address.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { Listeners } from '../../foundation/listeners.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import { Tally } from '../../foundation/tally.ts';
import { mayDialPort } from '../transport/udp-socket.ts';
import type { FindReply } from './messages.ts';
import { blockOf, compareDistance, distancePrefix, nodeId, nodeScope } from './node-address.ts';
import type { HostCheck } from './own-hosts.ts';
import { FAILURES_TO_DROP, type PeerHealth } from './peer-health.ts';
import { MAX_NODES_PER_HOST, mayHoldMany } from './routing-admission.ts';

/** Number of closest nodes that get a record. Enough remain if a third of them fail. */
export const STORE_WIDTH = 16;
/** The same number for a record that is sent over QUIC. */
export const LARGE_STORE_WIDTH = 10;

/** Number of closest nodes that get this record. */
export function widthFor({ encoded }: SignedRecord): number {
  return encoded.length <= MAX_DATAGRAM_RECORD_BYTES ? STORE_WIDTH : LARGE_STORE_WIDTH;
}

/** Maximum number of nodes that one search asks. */
const MAX_ASKED = 160;
/** Maximum number of nodes that one search remembers, and of unused nodes that one block named. */
const MAX_CANDIDATES = 800;
const MAX_NEW_OF_NAMER = 40;
/** Nodes of one block with a request or answer, while there are other candidates. */
const MAX_ASKED_OF_BLOCK = 4;
/** Nodes named by one block with an unanswered request, while there are other candidates. */
const MAX_UNANSWERED_OF_NAMER = 6;
/** Additional time for slow nodes while there are not enough answers, in ms. */
const PATIENCE_MS = 300;
/** Number of close nodes that are examined for density. */
const DENSITY_WINDOW = 24;
/**
 * The last node of that window is at least this many times as far from the key as the last of the closest, or the
 * closest are too dense. Chance makes it 1.5 times.
 */
const DENSE = 1.8;
/** Factor for the number of closest nodes if they are too dense. */
export const BEYOND = 3;

/**
 * Age of a search up to which records are sent to its nodes, in ms. Their tokens hold for longer, but other nodes may be
 * closer by then.
 */
const FRESH_MS = 5000;

/** The answer of one node. */
export interface NodeAnswer {
  readonly address: Address;
  readonly id: Uint8Array;
  readonly reply: FindReply;
  /** Proves our address to this node for some minutes. */
  readonly token: Uint8Array | null;
}

/** A node that the search knows. `slow` and `late` nodes may still answer, but do not count. */
interface Candidate {
  readonly address: Address;
  readonly id: Uint8Array;
  /** The block that it shares with other nodes; null if it counts alone. */
  readonly block: string | null;
  /** The blocks that named it; empty for nodes that we knew before. */
  readonly namers: Set<string>;
  /** The block that caused the request. */
  believed: string | null;
  state: 'new' | 'asked' | 'slow' | 'late' | 'answered' | 'failed';
  answer: NodeAnswer | null;
}

export interface SearchOptions {
  readonly target: Uint8Array;
  /** Number of closest nodes that must have answered. */
  readonly width: number;
  /** Maximum number of concurrent requests. */
  readonly parallel: number;
  /** Number of answers after which slow nodes are not waited for. */
  readonly enough: number;
  readonly start: readonly Address[];
}

interface SearchDependencies extends HostCheck {
  readonly clock: Clock;
  readonly health: PeerHealth;
  /** Queries one node. Null without an answer. */
  readonly ask: (address: Address, id: Uint8Array) => Promise<NodeAnswer | null>;
  /** Nodes without requests: this node, and unreachable ones. */
  readonly skips: (address: Address) => boolean;
}

function counts({ state }: Candidate): boolean {
  return state === 'new' || state === 'asked' || state === 'answered';
}

export class ClosestNodes {
  readonly #options: SearchOptions;
  readonly #deps: SearchDependencies;
  /** By distance, closest first. */
  readonly #candidates: Candidate[] = [];
  readonly #known = new Map<string, Candidate>();
  readonly #hosts = new Tally();
  /** Current numbers: asked nodes that are not late, by block; unanswered nodes, by the block that named them. */
  readonly #askedOfBlock = new Tally();
  readonly #unansweredOfNamer = new Tally();
  #asked = 0;
  #answered = 0;
  #isDense = false;
  #stopped = false;
  readonly #end = Promise.withResolvers<void>();
  /** Settles when the closest nodes have answered, no node is left to wait for, or the search was stopped. */
  readonly finished: Promise<void> = this.#end.promise;
  /** All answers so far in their order, including late ones. */
  readonly answers: NodeAnswer[] = [];
  readonly #listeners = new Listeners<[NodeAnswer]>();
  readonly #began: number;

  constructor(options: SearchOptions, dependencies: SearchDependencies) {
    this.#options = options;
    this.#deps = dependencies;
    this.#began = dependencies.clock.monotonic();
    for (const address of options.start) this.#add(address, null);
    this.#step();
  }

  /** Ends the search. Later answers are ignored. */
  stop(): void {
    this.#stopped = true;
    this.#end.resolve();
  }

  /** Calls back with each further answer until the returned function is called. */
  onAnswer(listener: (answer: NodeAnswer) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Whether the nodes that answered still accept our tokens. */
  get isFresh(): boolean {
    return this.#deps.clock.monotonic() - this.#began < FRESH_MS;
  }

  /**
   * Whether the closest nodes known so far are so dense that an attacker may have placed nodes in front of the right
   * ones. With few known nodes this can be a false alarm.
   */
  get looksDense(): boolean {
    return this.#isDense || this.#isDenseAround(this.#byBlock()[0]);
  }

  /**
   * Whether at least half of the closest nodes with a request have answered, or no other node is known. Otherwise the
   * search does not show that a record is missing.
   */
  get isHeard(): boolean {
    const { width, start } = this.#options;
    const asked = this.#candidates.filter(({ state }) => state !== 'new').slice(0, width);
    if (asked.length === 0) return start.every(this.#deps.skips);
    return 2 * asked.filter(({ answer }) => answer !== null).length >= asked.length;
  }

  /** How many nodes count as the `width` closest: more if they are too dense. */
  beyond(width: number): number {
    return this.#isDense ? width * BEYOND : width;
  }

  /** The closest nodes that answered, one of each block, closest first; then other nodes of these blocks. */
  closest(max: number): NodeAnswer[] {
    const [apart, crowd] = this.#byBlock();
    const answers = [...apart, ...crowd].map(({ answer }) => answer);
    return answers.filter((answer) => answer !== null).slice(0, max);
  }

  /** Answers of the first `beyond(width)` known nodes, without slow nodes. */
  within(width: number): NodeAnswer[] {
    const [apart, crowd] = this.#byBlock();
    const first = [...apart, ...crowd].filter(counts).slice(0, this.beyond(width));
    return first.map(({ answer }) => answer).filter((answer) => answer !== null);
  }

  /**
   * One node of each block, and the remaining nodes; both closest first. Nodes that do not count do not represent their
   * block.
   */
  #byBlock(): [apart: Candidate[], crowd: Candidate[]] {
    this.#count();
    const taken = new Set<string>();
    const apart: Candidate[] = [];
    const crowd: Candidate[] = [];
    for (const candidate of this.#candidates) {
      const { block, state } = candidate;
      if (block === null) apart.push(candidate);
      else if (taken.has(block) || (state === 'new' && !this.#mayAsk(candidate))) crowd.push(candidate);
      else {
        apart.push(candidate);
        if (counts(candidate)) taken.add(block);
      }
    }
    return [apart, crowd];
  }

  #count(): void {
    this.#askedOfBlock.clear();
    this.#unansweredOfNamer.clear();
    for (const { block, believed, state } of this.#candidates) {
      if (block !== null && (state === 'asked' || state === 'answered')) this.#askedOfBlock.add(block);
      if (believed !== null && state !== 'answered') this.#unansweredOfNamer.add(believed);
    }
  }

  /** Whether a node may be asked while there are others to ask. */
  #mayAsk({ block, namers }: Candidate): boolean {
    if (block !== null && this.#askedOfBlock.of(block) >= MAX_ASKED_OF_BLOCK) return false;
    return namers.size === 0 || this.#believed(namers) !== null;
  }

  /** One of the blocks that named a node whose other nodes answered well enough. */
  #believed(namers: ReadonlySet<string>): string | null {
    return namers.values().find((namer) => this.#unansweredOfNamer.of(namer) < MAX_UNANSWERED_OF_NAMER) ?? null;
  }

  /** @param namer the block that names it; null for nodes that we knew before */
  #add(address: Address, namer: string | null): void {
    const { isOwnHost, skips, health } = this.#deps;
    const key = formatAddress(address);
    const known = this.#known.get(key);
    if (known !== undefined && namer !== null && known.namers.size > 0) known.namers.add(namer);
    if (known !== undefined || skips(address) || health.failures(address) >= FAILURES_TO_DROP) return;
    if (this.#hosts.of(address.host) >= MAX_NODES_PER_HOST && !mayHoldMany(address.host, isOwnHost)) return;
    const id = nodeId(address);
    if (!this.#makeRoom(namer, id)) return;
    this.#hosts.add(address.host);
    const { target } = this.#options;
    const before = this.#candidates.findLastIndex((other) => compareDistance(target, other.id, id) < 0);
    const namers = new Set(namer === null ? [] : [namer]);
    const block = blockOf(address, isOwnHost);
    const candidate: Candidate = { address, id, block, namers, believed: null, state: 'new', answer: null };
    this.#candidates.splice(before + 1, 0, candidate);
    this.#known.set(key, candidate);
  }

  /** If a block named too many nodes, forgets the farthest unused node. False if there is no room. */
  #makeRoom(namer: string | null, id: Uint8Array): boolean {
    if (this.#candidates.length >= MAX_CANDIDATES) return false;
    if (namer === null) return true;
    const isItsOwn = ({ state, namers }: Candidate): boolean =>
      state === 'new' && namers.size === 1 && namers.has(namer);
    if (this.#candidates.filter(isItsOwn).length < MAX_NEW_OF_NAMER) return true;
    const last = this.#candidates.findLastIndex(isItsOwn);
    const farthest = this.#candidates[last];
    if (farthest === undefined || compareDistance(this.#options.target, farthest.id, id) < 0) return false;
    this.#candidates.splice(last, 1);
    this.#known.delete(formatAddress(farthest.address));
    this.#hosts.add(farthest.address.host, -1);
    return true;
  }

  #step(): void {
    // protocol-dht.md, step 9
    if (this.#stopped) return;
    const { parallel } = this.#options;
    const width = this.beyond(this.#options.width);
    // If the closest nodes may collude, the nodes behind them must answer, too.
    const enough = this.#isDense ? width : this.#options.enough;
    let active = this.#candidates.filter(({ state }) => state === 'asked').length;
    let open = 0;
    let waiting = 0;
    let window = 0;
    const [apart, crowd] = this.#byBlock();
    const look = (candidates: readonly Candidate[]): void => {
      for (const candidate of candidates) {
        if (window >= width) break;
        if (candidate.state === 'new' && candidates === apart && !this.#mayAsk(candidate)) continue;
        if (candidate.state === 'new' && active < parallel && this.#asked < MAX_ASKED) {
          this.#visit(candidate);
          active++;
        }
        if (candidate.state === 'slow') waiting++;
        if (candidate.state === 'asked' || (candidate.state === 'new' && this.#asked < MAX_ASKED)) open++;
        if (counts(candidate)) window++;
      }
    };
    look(apart);
    // If there are not enough blocks, further nodes of the same blocks get requests.
    if (open === 0) look(crowd);
    if (open > 0 || (waiting > 0 && this.#answered < enough)) return;
    if (!this.#isDense && this.#isDenseAround(apart)) {
      this.#isDense = true;
      this.#step();
    } else this.#end.resolve();
  }

  #isDenseAround(apart: readonly Candidate[]): boolean {
    const near = apart.filter(counts).slice(0, DENSITY_WINDOW);
    const [edge, last] = [near[STORE_WIDTH - 1], near.at(-1)];
    // Addresses of this machine and of local networks cost nothing, so density means nothing there.
    if (edge === undefined || last === undefined || near.some(({ block }) => block === null)) return false;
    const { target } = this.#options;
    return distancePrefix(target, last.id) > DENSE * distancePrefix(target, edge.id);
  }

  #visit(candidate: Candidate): void {
    const { clock, health, ask } = this.#deps;
    const { block, namers } = candidate;
    this.#asked++;
    candidate.state = 'asked';
    candidate.believed = this.#believed(namers);
    if (candidate.believed !== null) this.#unansweredOfNamer.add(candidate.believed);
    if (block !== null) this.#askedOfBlock.add(block);
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
      timer = clock.after(health.slowAfterMs(candidate.address), () => {
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
          const teller = block ?? formatAddress(candidate.address);
          for (const node of answer.reply.nodes)
            if (nodeScope(node.host) >= scope && mayDialPort(node.port)) this.#add(node, teller);
          this.answers.push(answer);
          this.#listeners.notify(answer);
        }
        this.#step();
      }),
    );
  }
}
