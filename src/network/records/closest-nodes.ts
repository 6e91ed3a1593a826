/**
 * The nodes around a key, asked once: who publishes looks first what they hold, and gives his record to the same nodes
 * afterwards. Two searches would ask everybody twice, and wait twice.
 */
import type { Clock } from '../../foundation/clock.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import { SharedLookup } from './lookup.ts';
import type { Lookups } from './lookups.ts';
import type { RecordReader } from './record-reader.ts';
import type { RecordWriter } from './record-writer.ts';
import type { GetOptions, NearbyNodes, PutOptions, PutResult } from './types.ts';

/** One search of the nodes around a key for several who want something of them: what is read there, and what is put. */

/**
 * So long after the search records are given to the nodes that it found, milliseconds: the tokens by which they know our
 * address hold for 7.5 s at least. Later it takes a search of its own.
 */
const FRESH_MS = 5000;

interface VicinityDependencies {
  readonly clock: Clock;
  readonly lookups: Pick<Lookups, 'forGiving'>;
  readonly reader: Pick<RecordReader, 'get'>;
  readonly writer: Pick<RecordWriter, 'put'>;
}

export class ClosestNodes implements NearbyNodes {
  readonly #key: Uint8Array;
  readonly #type: RecordType | null;
  readonly #deps: VicinityDependencies;
  readonly #shared: SharedLookup;
  readonly #began: number;

  /** Begins to search. @param type of records that will be read; null where none are */
  constructor(key: Uint8Array, type: RecordType | null, dependencies: VicinityDependencies) {
    this.#key = key;
    this.#type = type;
    this.#deps = dependencies;
    this.#began = dependencies.clock.now();
    const request = { types: type === null ? [] : [type], wantsRecords: type !== null };
    this.#shared = new SharedLookup((onAnswer) => dependencies.lookups.forGiving(key, request, onAnswer));
  }

  /** @throws SvcError `cancelled` */
  async get(type: RecordType, options: GetOptions): Promise<SignedRecord | null> {
    return await this.#deps.reader.get(this.#key, type, options, type === this.#type ? this.#shared : null);
  }

  /** @throws as `RecordWriter.put` */
  async put(record: SignedRecord, options: PutOptions): Promise<PutResult> {
    const age = this.#deps.clock.now() - this.#began;
    const isFresh = age >= 0 && age < FRESH_MS;
    return await this.#deps.writer.put(this.#key, record, options, isFresh ? this.#shared : null);
  }

  stop(): void {
    this.#shared.lookup.stop();
  }
}
