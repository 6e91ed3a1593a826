/**
 * The quorum of a read: the records that nodes have under a key according to their answers. Answers contain records,
 * which are verified here, or claim to have some. The newest version that enough nodes agree on ends a read.
 */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { decodeRecord, type SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { NodeAnswer } from './closest-nodes.ts';
import { isOfMany, noteOf } from './key-rows.ts';
import type { Summary } from './messages.ts';
import { voterOf } from './node-address.ts';

/** The vote of the local store. */
const OWN = '';

/** One version of one record, and the nodes that have it. */
export interface Claim extends Summary {
  /** The nodes that have it, without our own store. */
  readonly holders: NodeAnswer[];
  /** Voters for this version. Nodes of one host or block share a vote. */
  readonly voters: Set<string>;
  /** The record itself once it was received and verified. */
  record: SignedRecord | null;
}

/** Identifies a record of the key: one per type, publisher or note. */
type Slot = string;

function slotOf(record: SignedRecord): Slot {
  return isOfMany(record.type) ? `${record.type}:${record.aid}:${noteOf(record)}` : String(record.type);
}

function summaryOf({ type, seq, timestamp, delegation, encoded }: SignedRecord): Summary {
  return { type, seq, timestamp, issuedAt: delegation.issuedAt, digest: recordDigest(encoded) };
}

function versionOf(summary: Summary): string {
  return `${summary.issuedAt}.${summary.seq}.${summary.timestamp}.${toHex(summary.digest)}`;
}

/** Above 0 if `a` is newer, in the order that all nodes use. */
function compareClaims(a: Summary, b: Summary): number {
  return a.issuedAt - b.issuedAt || a.seq - b.seq || a.timestamp - b.timestamp || Buffer.compare(a.digest, b.digest);
}

export class Quorum {
  readonly #types: ReadonlySet<RecordType>;
  readonly #isValid: (record: SignedRecord) => boolean;
  readonly #slots = new Map<Slot, Map<string, Claim>>();
  /** Records that were checked, by digest; null for invalid records. */
  readonly #judged = new Map<string, SignedRecord | null>();

  /**
   * @param types wanted types; empty for all
   * @param isValid whether a record is valid now and belongs under the key; may throw if not
   */
  constructor(types: readonly RecordType[], isValid: (record: SignedRecord) => boolean) {
    this.#types = new Set(types);
    this.#isValid = isValid;
  }

  /** Adds the answer of a node; `null` is our own store. */
  add(records: readonly Uint8Array[], summaries: readonly Summary[], holder: NodeAnswer | null): void {
    // A node has one record of each type, so further versions are made up.
    const promised = new Set<RecordType>();
    for (const encoded of records) {
      const record = this.#judge(encoded);
      if (record !== null) this.addVerified(record, holder);
    }
    for (const summary of summaries) {
      if (!this.#wants(summary.type) || isOfMany(summary.type) || promised.has(summary.type)) continue;
      promised.add(summary.type);
      this.#vote(String(summary.type), summary, holder, null);
    }
  }

  /** Adds a fetched record to the claims for it. */
  fulfil(encoded: Uint8Array): void {
    const record = this.#judge(encoded);
    if (record === null) return;
    const claim = this.#slots.get(slotOf(record))?.get(versionOf(summaryOf(record)));
    if (claim === undefined) this.addVerified(record, null);
    else claim.record = record;
  }

  /** Digests of the valid records so far, in hex. */
  digests(): string[] {
    return [...this.#judged].flatMap(([digest, record]) => (record === null ? [] : [digest]));
  }

  /** True if exactly these bytes were checked before. */
  knows(encoded: Uint8Array): boolean {
    return this.#judged.has(toHex(recordDigest(encoded)));
  }

  /** Adds a record that the caller has verified. */
  addVerified(record: SignedRecord, holder: NodeAnswer | null): void {
    this.#judged.set(toHex(recordDigest(record.encoded)), record);
    this.#vote(slotOf(record), summaryOf(record), holder, record);
  }

  /** Whether records of this type are wanted. */
  #wants(type: RecordType): boolean {
    return this.#types.size === 0 || this.#types.has(type);
  }

  #judge(encoded: Uint8Array): SignedRecord | null {
    const digest = toHex(recordDigest(encoded));
    const known = this.#judged.get(digest);
    if (known !== undefined && (known === null || equalBytes(known.encoded, encoded))) return known;
    let record: SignedRecord | null = null;
    try {
      const decoded = decodeRecord(Uint8Array.from(encoded));
      if (this.#wants(decoded.type) && this.#isValid(decoded)) record = decoded;
    } catch {
      // Malformed or invalid.
    }
    this.#judged.set(digest, record);
    return record;
  }

  #vote(slot: Slot, summary: Summary, holder: NodeAnswer | null, record: SignedRecord | null): void {
    let versions = this.#slots.get(slot);
    if (versions === undefined) this.#slots.set(slot, (versions = new Map()));
    const name = versionOf(summary);
    let claim = versions.get(name);
    if (claim === undefined) versions.set(name, (claim = { ...summary, holders: [], voters: new Set(), record: null }));
    claim.record ??= record;
    claim.voters.add(holder === null ? OWN : voterOf(holder.address));
    if (holder !== null) claim.holders.push(holder);
  }

  get slots(): readonly Slot[] {
    return [...this.#slots.keys()];
  }

  /** The claimed versions of one record, newest first. */
  versions(slot: Slot): readonly Claim[] {
    return [...(this.#slots.get(slot)?.values() ?? [])].sort((a, b) => compareClaims(b, a));
  }

  /** Number of voters for the newest claimed version of a record. */
  agreement(slot: Slot): number {
    return this.versions(slot)[0]?.voters.size ?? 0;
  }

  /** The newest verified version of each record. */
  records(): SignedRecord[] {
    const newest = this.slots.map((slot) => this.versions(slot).find(({ record }) => record !== null)?.record ?? null);
    return newest.filter((record) => record !== null);
  }
}
