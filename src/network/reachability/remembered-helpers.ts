/** The helpers that a node had before it was started: kept on its disk, so that it need not choose others each time. */
import { isIP } from 'node:net';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { isObject } from '../../foundation/json.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';

/** Helpers that are remembered: as many as a node wants to have. */
export const MAX_REMEMBERED_HELPERS = 3;
const KEY = 'reach.helpers';

/** A helper: where it is in the record network, and where over QUIC. */
export interface RememberedHelper extends Address {
  readonly at: NodeAt;
}

/** As it is kept. */
type Kept = Readonly<Record<'network' | 'node_key' | 'dht' | 'quic', string>>;

/** Where they are kept. */
export interface HelperMemory {
  get(key: string): unknown;
  set(key: string, value: readonly Kept[]): void;
}

/** What a member says, where it is an address and no name, which would have to be looked up. */
function addressIn(text: unknown): Address | null {
  const address = typeof text === 'string' ? parseAddress(text) : null;
  return address === null || isIP(address.host) === 0 ? null : address;
}

export class RememberedHelpers {
  readonly #network: string;
  readonly #memory: HelperMemory;

  /** @param network the network that this node is in: nodes of others do not help it */
  constructor(network: string, memory: HelperMemory) {
    this.#network = network;
    this.#memory = memory;
  }

  /** The best first. Whether they still help has to be asked. */
  get all(): readonly RememberedHelper[] {
    const stored = this.#memory.get(KEY);
    const rows: readonly unknown[] = Array.isArray(stored) ? stored : [];
    return rows.flatMap((row) => this.#read(row) ?? []).slice(0, MAX_REMEMBERED_HELPERS);
  }

  /** Takes these in place of all others. */
  keep(helpers: readonly RememberedHelper[]): void {
    const rows = helpers.slice(0, MAX_REMEMBERED_HELPERS).map(({ at, ...dht }) => ({
      network: this.#network,
      node_key: toHex(at.nodeKey),
      dht: formatAddress(dht),
      quic: formatAddress(at.address),
    }));
    this.#memory.set(KEY, rows);
  }

  #read(row: unknown): RememberedHelper | null {
    if (!isObject(row) || row['network'] !== this.#network) return null;
    const [dht, address] = [addressIn(row['dht']), addressIn(row['quic'])];
    const nodeKey = typeof row['node_key'] === 'string' ? fromHex(row['node_key']) : null;
    if (dht === null || address === null || nodeKey?.length !== PUBLIC_KEY_BYTES) return null;
    return { ...dht, at: { nodeKey, address } };
  }
}

/* The helpers of the last start, until they help again or others are chosen: whoever keeps the same has nothing to tell. */

interface FormerHelpersDependencies {
  readonly clock: Clock;
  /** Says hello to a node, over a connection that stays; rejects where it does not help. */
  readonly hello: (node: NodeAt, signal: AbortSignal) => Promise<unknown>;
  /** Told whenever one of them has answered, or has not. */
  readonly heard: () => void;
  /** How long one of them is waited for, milliseconds. */
  readonly answerMs: number;
}

export class FormerHelpers {
  readonly #deps: FormerHelpersDependencies;
  /** The best first. */
  #helpers: readonly RememberedHelper[];
  readonly #asked = new Set<RememberedHelper>();
  readonly #answered = new Set<RememberedHelper>();

  constructor(helpers: readonly RememberedHelper[], dependencies: FormerHelpersDependencies) {
    this.#helpers = helpers;
    this.#deps = dependencies;
  }

  /** Asks those who have not answered, unless they are asked just now: before there is a network nobody answers. */
  ask(): void {
    for (const helper of this.#helpers)
      if (!this.#asked.has(helper) && !this.#answered.has(helper)) detach(this.#ask(helper));
  }

  /** Whether one of them may still answer. */
  get isAsking(): boolean {
    return this.#asked.size > 0;
  }

  /** Those who have answered, the best first; it knows of none any more then. */
  take(): readonly RememberedHelper[] {
    const answered = this.#helpers.filter((helper) => this.#answered.has(helper));
    this.#helpers = [];
    return answered;
  }

  /** Whether there are any left. */
  get some(): boolean {
    return this.#helpers.length > 0;
  }

  async #ask(helper: RememberedHelper): Promise<void> {
    this.#asked.add(helper);
    using limit = awakeTimeout(this.#deps.clock, this.#deps.answerMs);
    try {
      await this.#deps.hello(helper.at, limit.signal);
      this.#answered.add(helper);
    } catch {
      // It is gone, or there is no network yet.
    }
    this.#asked.delete(helper);
    this.#deps.heard();
  }
}
