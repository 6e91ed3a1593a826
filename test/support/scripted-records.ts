/** An in-memory record network whose results the test controls: replicas, failures, and being alone. */
import { toHex } from '../../src/foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../src/foundation/clock.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { belongsUnderKey } from '../../src/foundation/records/keys.ts';
import { compareFreshness, expiresAt, type SignedRecord } from '../../src/foundation/records/record.ts';
import type { RecordType } from '../../src/foundation/records/types.ts';
import type {
  GetOptions,
  HolderCount,
  ListOptions,
  NearbyNodes,
  PutOptions,
  PutResult,
  Reachability,
  RecordNetwork,
} from '../../src/network/records/types.ts';
import { verifyRecord } from './records.ts';

export class ScriptedRecords
  implements Pick<RecordNetwork, 'put' | 'get' | 'list' | 'near' | 'holders' | 'reachability' | 'onReachability'>
{
  /** Replicas that a put reports. 0: no node responds, and nothing is stored. */
  replicas = 8;
  /** Part of the nodes that still have a stored record, 0 to 1. */
  holdingPart = 1;
  /** Number of refusals by reason if no node stores a record. */
  refused: PutResult['refused'] = {};
  state: Reachability = { ready: true, peers: 20, clients: 0, natType: 1, observed: [], inRoutingTables: true };
  /** Every stored record in order. */
  readonly kept: SignedRecord[] = [];
  /** Called before a record is stored. May wait or throw. */
  beforePut: (record: SignedRecord) => void | Promise<void> = () => {};
  /** Called after a record was stored. May wait or throw. */
  afterPut: (record: SignedRecord) => void | Promise<void> = () => {};
  /** False if the nodes near a key do not answer a search. */
  isHeard = true;
  /** Number of reads. */
  reads = 0;
  readonly #clock: Clock;
  readonly #records = new Map<string, SignedRecord>();
  readonly #handlers = new Set<(r: Reachability) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Callbacks for late results of a put. */
  readonly wholes: ((result: PutResult) => void)[] = [];

  async put(key: Uint8Array, record: SignedRecord, { onWhole }: PutOptions = {}): Promise<PutResult> {
    if (onWhole !== undefined) this.wholes.push(onWhole);
    verifyRecord(record, unixSeconds(this.#clock));
    if (!belongsUnderKey(record, key)) throw new Error('misplaced record');
    await this.beforePut(record);
    const { peers } = this.state;
    if (this.replicas === 0 && peers > 0) return { replicas: 0, newer: null, refused: this.refused };
    const name = `${toHex(key)} ${record.type} ${record.aid}`;
    const held = this.#valid(this.#records.get(name));
    if (held !== null && compareFreshness(held, record) > 0)
      return { replicas: 0, newer: held, refused: { newer: this.replicas } };
    this.#records.set(name, record);
    this.kept.push(record);
    await this.afterPut(record);
    if (peers === 0) return { replicas: 0, newer: null, refused: {}, isHere: true };
    return { replicas: this.replicas, newer: null, refused: {} };
  }

  /** A preliminary record for a reader. */
  first: SignedRecord | null = null;

  async get(key: Uint8Array, type: RecordType, options: GetOptions = {}): Promise<SignedRecord | null> {
    if (this.first !== null) options.onFirst?.(this.first);
    const { onHeard } = options;
    const [first] = await this.list(key, [type], onHeard === undefined ? {} : { onHeard });
    return first ?? null;
  }

  async holders(key: Uint8Array, type: RecordType, aid: Aid, seq: number): Promise<HolderCount> {
    const answered = this.state.ready && this.replicas > 0 ? this.state.peers : 0;
    const isHeld = (await this.list(key, [type])).some((record) => record.aid === aid && record.seq >= seq);
    return { answered, holding: isHeld ? Math.round(answered * this.holdingPart) : 0 };
  }

  /** Forgets records, by default all of them, as if all nodes were replaced. */
  forget(fits: (record: SignedRecord) => boolean = () => true): void {
    for (const [name, record] of this.#records) if (fits(record)) this.#records.delete(name);
  }

  /** Returns how to restore the present records, as if all nodes returned to older databases. */
  save(): () => void {
    const saved = [...this.#records];
    return () => {
      this.#records.clear();
      for (const [name, record] of saved) this.#records.set(name, record);
    };
  }

  near(key: Uint8Array): NearbyNodes {
    return {
      get: (type, options) => this.get(key, type, options),
      put: (record, options) => this.put(key, record, options),
      stop: () => {},
    };
  }

  async list(
    key: Uint8Array,
    types: readonly RecordType[],
    options: ListOptions = {},
  ): Promise<readonly SignedRecord[]> {
    this.reads += 1;
    options.onHeard?.(this.isHeard);
    if (this.replicas === 0) return [];
    const found = [...this.#records]
      .filter(([name, record]) => name.startsWith(toHex(key)) && types.includes(record.type))
      .flatMap(([, record]) => this.#valid(record) ?? []);
    return found.slice(0, options.limit);
  }

  reachability(): Reachability {
    return this.state;
  }

  onReachability(handler: (r: Reachability) => void): () => void {
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  }

  /** Changes the reachability of the node and notifies listeners. */
  become(change: Partial<Reachability>): void {
    this.state = { ...this.state, ...change };
    for (const handler of this.#handlers) handler(this.state);
  }

  get listeners(): number {
    return this.#handlers.size;
  }

  /** The newest stored record that matches. */
  last(fits: (record: SignedRecord) => boolean): SignedRecord | undefined {
    return this.kept.findLast(fits);
  }

  #valid(record: SignedRecord | undefined): SignedRecord | null {
    return record !== undefined && expiresAt(record) >= unixSeconds(this.#clock) ? record : null;
  }
}
