/**
 * Verifies at which addresses this node is reachable from outside: helpers dial them back. Until then, addresses from
 * the router or the record network are guesses.
 */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { backoff } from '../../foundation/backoff.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { NodeParts } from '../../foundation/node-parts.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import type { NodeAt } from '../node-requests.ts';
import type { HelperReply } from './signals.ts';

/** Interval between checks for new addresses, milliseconds. */
const CHECK_MS = 5_000;
/** How long a successful dial-back is valid, milliseconds. */
export const REACHABLE_TTL_MS: number = 30 * 60_000;
/**
 * First pause before a retry, and the longest one after failed dial-backs and if no helper answered, milliseconds. A
 * single failure may come from a machine that was busy for a moment.
 */
const MIN_RETRY_MS = 10_000;
export const UNREACHABLE_TTL_MS: number = 10 * 60_000;
export const UNANSWERED_RETRY_MS = 60_000;
/** Growth of that pause. */
const RETRY_FACTOR = 4;
/** Maximum number of addresses to verify. */
const MAX_VERIFIED = 3;
/** After this number of failures at different nodes, an address counts as unreachable. */
const MAX_FAILED_NODES = 2;

interface AddressVerificationDependencies extends NodeParts {
  /** Public addresses that may lead to the QUIC port; empty until the reachability is known. */
  readonly candidates: () => readonly Address[];
  /** Nodes to ask, each in a different network. */
  readonly nodes: () => Promise<readonly NodeAt[]>;
  /** Makes a node dial a port of this node, at the host from which the request came. */
  readonly requestDialBack: (node: NodeAt, port: number) => Promise<HelperReply>;
  /** Called with the results, by address. Addresses without a result are omitted. */
  readonly onResults: (verdicts: ReadonlyMap<string, boolean>) => void;
}

interface Verdict {
  readonly isReached: boolean | null;
  /** Number of consecutive attempts that did not reach the address. */
  readonly failures: number;
  readonly at: number;
  readonly until: number;
}

export class AddressVerification implements Component {
  readonly #deps: AddressVerificationDependencies;
  /** By address. */
  #verdicts = new Map<string, Verdict>();
  #lastReport = '[]';
  #checks: RepeatingTask | null = null;

  constructor(dependencies: AddressVerificationDependencies) {
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const onError = (error: unknown): void =>
      this.#deps.log.debug({ error }, 'cannot verify the addresses of this node');
    this.#checks = every(this.#deps.clock, { periodMs: CHECK_MS, onError }, () => this.#check());
  }

  /** Requests in progress end when the connections close. */
  async stop(): Promise<void> {
    this.#checks?.stop();
  }

  /** When another node last reached this address, Unix milliseconds; null if the last attempt failed. */
  reachedAt(address: Address): number | null {
    const verdict = this.#verdicts.get(formatAddress(address));
    return verdict?.isReached === true ? verdict.at : null;
  }

  async #check(): Promise<void> {
    const { candidates, nodes, clock } = this.#deps;
    const all = candidates().slice(0, MAX_VERIFIED);
    const names = new Set(all.map(formatAddress));
    this.#verdicts = new Map([...this.#verdicts].filter(([name]) => names.has(name)));
    const due = all.filter((one) => (this.#verdicts.get(formatAddress(one))?.until ?? 0) <= clock.monotonic());
    const helpers = due.length > 0 ? await nodes() : [];
    for (const address of due) {
      const answer = await this.#isReached(address, helpers);
      const known = this.#verdicts.get(formatAddress(address));
      const failures = answer === true ? 0 : (known?.failures ?? 0) + 1;
      const maxMs = answer === null ? UNANSWERED_RETRY_MS : UNREACHABLE_TTL_MS;
      const pauseMs = backoff({ firstMs: MIN_RETRY_MS, maxMs, factor: RETRY_FACTOR }, failures) || REACHABLE_TTL_MS;
      // Silence does not refute that the address is unreachable.
      const isReached = answer ?? (known?.isReached === false ? false : null);
      const at = clock.monotonic();
      this.#verdicts.set(formatAddress(address), { isReached, failures, at, until: at + pauseMs });
    }
    this.#report();
  }

  /** Null if no node could tell. */
  async #isReached({ host, port }: Address, nodes: readonly NodeAt[]): Promise<boolean | null> {
    let failed = 0;
    for (const node of nodes) {
      if (failed >= MAX_FAILED_NODES) break;
      try {
        const reply = await this.#deps.requestDialBack(node, port);
        // A node that sees another host has dialed that host, not this address.
        if (reply.seenAt.host !== host) continue;
        if (reply.reached) return true;
        failed++;
      } catch (error) {
        this.#deps.log.debug({ error }, 'a node did not report whether it reaches this node');
      }
    }
    return failed > 0 ? false : null;
  }

  #report(): void {
    const known = new Map<string, boolean>();
    for (const [name, { isReached }] of this.#verdicts) if (isReached !== null) known.set(name, isReached);
    const text = JSON.stringify([...known]);
    if (text === this.#lastReport) return;
    this.#lastReport = text;
    this.#deps.onResults(known);
  }
}
