/** Stores the helpers on disk, so that a node can use the same ones after a restart. */
import { isIP } from 'node:net';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { isUint } from '../../foundation/cbor.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { MAX_PORT } from '../../foundation/domain/tunnels.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { isObject } from '../../foundation/json.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import { MAX_TLS_PORTS } from './signals.ts';

/** Maximum number of stored helpers. */
export const MAX_STORED_HELPERS = 3;
/** Nodes whose TLS ports are remembered until they are stored. */
const MAX_NOTED = 64;
const KEY = 'reach.helpers';

/** A helper, with its addresses in the record network and for QUIC. */
export interface StoredHelper extends Address {
  readonly at: NodeAt;
  /** TCP ports at which it lends UDP ports over TLS. */
  readonly tlsPorts: readonly number[];
}

/** The stored form. */
type StoredRow = Readonly<Record<'network' | 'node_key' | 'dht' | 'quic', string>> & {
  readonly tls?: readonly number[];
};

/** Persistent storage. */
export interface HelperStorage {
  get(key: string): unknown;
  set(key: string, value: readonly StoredRow[]): void;
}

/** Parses an IP address with port. Names are rejected, because they would require a lookup. */
function parseIpAddress(text: unknown): Address | null {
  const address = typeof text === 'string' ? parseAddress(text) : null;
  return address === null || isIP(address.host) === 0 ? null : address;
}

function parsePorts(value: unknown): readonly number[] {
  const ports: readonly unknown[] = Array.isArray(value) ? value : [];
  return ports.filter((port): port is number => isUint(port, MAX_PORT) && port > 0).slice(0, MAX_TLS_PORTS);
}

export class HelperStore {
  readonly #network: string;
  readonly #storage: HelperStorage;
  /** Of the nodes that have answered a hello, by the hex of their keys. */
  readonly #tlsPorts = new LruCache<string, readonly number[]>({ maxEntries: MAX_NOTED });

  /** @param network the network of this node; helpers of other networks are ignored */
  constructor(network: string, memory: HelperStorage) {
    this.#network = network;
    this.#storage = memory;
  }

  /** In order of preference. They may no longer help. */
  get all(): readonly StoredHelper[] {
    const stored = this.#storage.get(KEY);
    const rows: readonly unknown[] = Array.isArray(stored) ? stored : [];
    return rows.flatMap((row) => this.#parse(row) ?? []).slice(0, MAX_STORED_HELPERS);
  }

  /** Replaces the stored helpers. Their TLS ports are those of their last hello. */
  keep(helpers: readonly Omit<StoredHelper, 'tlsPorts'>[]): void {
    for (const { at, tlsPorts } of this.all)
      if (!this.#tlsPorts.has(toHex(at.nodeKey))) this.#tlsPorts.set(toHex(at.nodeKey), tlsPorts);
    const rows = helpers.slice(0, MAX_STORED_HELPERS).map(({ at, ...dht }): StoredRow => {
      const node_key = toHex(at.nodeKey);
      const tls = this.#tlsPorts.get(node_key) ?? [];
      const row = { network: this.#network, node_key, dht: formatAddress(dht), quic: formatAddress(at.address) };
      return tls.length === 0 ? row : { ...row, tls };
    });
    this.#storage.set(KEY, rows);
  }

  /** Remembers the TLS ports that a helper named in its hello. */
  noteTlsPorts(nodeKey: Uint8Array, ports: readonly number[]): void {
    const key = toHex(nodeKey);
    this.#tlsPorts.set(key, ports);
    const stored = this.all;
    const known = stored.find(({ at }) => toHex(at.nodeKey) === key);
    if (known !== undefined && known.tlsPorts.join() !== ports.join()) this.keep(stored);
  }

  #parse(row: unknown): StoredHelper | null {
    if (!isObject(row) || row['network'] !== this.#network) return null;
    const [dht, address] = [parseIpAddress(row['dht']), parseIpAddress(row['quic'])];
    const nodeKey = typeof row['node_key'] === 'string' ? fromHex(row['node_key']) : null;
    if (dht === null || address === null || nodeKey?.length !== PUBLIC_KEY_BYTES) return null;
    return { ...dht, at: { nodeKey, address }, tlsPorts: parsePorts(row['tls']) };
  }
}

/* Contacts the helpers from before a restart. If they still help, the published record does not change. */

interface PreviousHelpersDependencies {
  readonly clock: Clock;
  /** Sends a hello over a persistent connection; rejects if the node does not help. */
  readonly hello: (node: NodeAt, signal: AbortSignal) => Promise<unknown>;
  /** Called after each answer or failure. */
  readonly onResult: () => void;
  /** Timeout of a hello, milliseconds. */
  readonly timeoutMs: number;
}

export class PreviousHelpers {
  readonly #deps: PreviousHelpersDependencies;
  /** In order of preference. */
  #helpers: readonly StoredHelper[];
  readonly #pending = new Set<StoredHelper>();
  readonly #answered = new Set<StoredHelper>();

  constructor(helpers: readonly StoredHelper[], dependencies: PreviousHelpersDependencies) {
    this.#helpers = helpers;
    this.#deps = dependencies;
  }

  /**
   * Sends hellos to helpers that have not answered, unless one is pending. Retries are necessary because the network
   * may not be up yet.
   */
  sendHellos(): void {
    for (const helper of this.#helpers)
      if (!this.#pending.has(helper) && !this.#answered.has(helper)) detach(this.#sendHello(helper));
  }

  /** Whether any hello is pending. */
  get isPending(): boolean {
    return this.#pending.size > 0;
  }

  /** Returns the helpers that have answered, in order of preference, and forgets the rest. */
  takeAnswered(): readonly StoredHelper[] {
    const answered = this.#helpers.filter((helper) => this.#answered.has(helper));
    this.#helpers = [];
    return answered;
  }

  /** Whether any helpers are left. */
  get hasAny(): boolean {
    return this.#helpers.length > 0;
  }

  async #sendHello(helper: StoredHelper): Promise<void> {
    this.#pending.add(helper);
    using limit = awakeTimeout(this.#deps.clock, this.#deps.timeoutMs);
    try {
      await this.#deps.hello(helper.at, limit.signal);
      this.#answered.add(helper);
    } catch {
      // The helper stopped, or the network is not up yet.
    }
    this.#pending.delete(helper);
    this.#deps.onResult();
  }
}
