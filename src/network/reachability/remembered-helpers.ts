/** The helpers that a node had before it was started: kept on its disk, so that it need not choose others each time. */
import { isIP } from 'node:net';
import { type Address, formatAddress, parseAddress } from '../../foundation/address.ts';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import { isObject } from '../../foundation/json.ts';
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
