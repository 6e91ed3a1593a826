/**
 * The quorum of a read: what the asked nodes say that there is under a key. Each answer either carries records, which are
 * verified here, or claims to hold some; the newest claim that enough nodes agree on ends a read.
 */
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { recordDigest } from '../../foundation/records/digest.ts';
import { decodeRecord, type SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { NodeAnswer } from './closest-nodes.ts';
import { isOfMany, noteOf } from './key-rows.ts';
import type { Summary } from './messages.ts';
import { voterOf } from './node-address.ts';

/** The vote of our own store. */
const OWN = '';

/** One version of one record, and who has it. */
export interface Claim extends Summary {
  /** The nodes that hold it; our own store is none of them. */
  readonly holders: NodeAnswer[];
  /** Whose word it is that it is there: many nodes of one host or block have one vote. */
  readonly voters: Set<string>;
  /** The record itself once it was seen and verified. */
  record: SignedRecord | null;
}

/** Which record of a key it is a version of: one per type, or per publisher, or per note. */
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

/** Above 0 where `a` is the newer version, as all nodes order them. */
function compareClaims(a: Summary, b: Summary): number {
  return a.issuedAt - b.issuedAt || a.seq - b.seq || a.timestamp - b.timestamp || Buffer.compare(a.digest, b.digest);
}

export class Quorum {
  readonly #types: ReadonlySet<RecordType>;
  readonly #isValid: (record: SignedRecord) => boolean;
  readonly #slots = new Map<Slot, Map<string, Claim>>();
  /** Records already judged, by digest; null for an invalid one. */
  readonly #judged = new Map<string, SignedRecord | null>();

  /**
   * @param types of records that are asked for; all where there are none
   * @param isValid whether a record verifies now and belongs under the key; may throw where not
   */
  constructor(types: readonly RecordType[], isValid: (record: SignedRecord) => boolean) {
    this.#types = new Set(types);
    this.#isValid = isValid;
  }

  /** Takes in what a node has; `null` stands for our own store. */
  add(records: readonly Uint8Array[], summaries: readonly Summary[], holder: NodeAnswer | null): void {
    // A node holds one record of each type: who promises several versions of it makes them up.
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

  /** Puts a record that was fetched to the claims that promised it. */
  fulfil(encoded: Uint8Array): void {
    const record = this.#judge(encoded);
    if (record === null) return;
    const claim = this.#slots.get(slotOf(record))?.get(versionOf(summaryOf(record)));
    if (claim === undefined) this.addVerified(record, null);
    else claim.record = record;
  }

  /** Digests of the valid records that have come, in hex. */
  digests(): string[] {
    return [...this.#judged].flatMap(([digest, record]) => (record === null ? [] : [digest]));
  }

  /** True where these very bytes have been judged before. */
  knows(encoded: Uint8Array): boolean {
    return this.#judged.has(toHex(recordDigest(encoded)));
  }

  /** Takes in a record that the caller has verified. */
  addVerified(record: SignedRecord, holder: NodeAnswer | null): void {
    this.#judged.set(toHex(recordDigest(record.encoded)), record);
    this.#vote(slotOf(record), summaryOf(record), holder, record);
  }

  /** Whether records of this type are asked for. */
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
      // It is none, or does not verify.
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

  /** The versions of one record that were claimed, newest first. */
  versions(slot: Slot): readonly Claim[] {
    return [...(this.#slots.get(slot)?.values() ?? [])].sort((a, b) => compareClaims(b, a));
  }

  /** How many hosts hold the newest claimed version of a record. */
  agreement(slot: Slot): number {
    return this.versions(slot)[0]?.voters.size ?? 0;
  }

  /** The newest verified record of each slot that is in hand. */
  records(): SignedRecord[] {
    const newest = this.slots.map((slot) => this.versions(slot).find(({ record }) => record !== null)?.record ?? null);
    return newest.filter((record) => record !== null);
  }
}
