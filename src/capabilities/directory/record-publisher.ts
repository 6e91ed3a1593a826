/**
 * Signs records and sends them to the network, with sequence numbers that never decrease. One publication searches once for
 * each key: it reads what the network holds from the result, and writes the records to it.
 */

import { createHash } from 'node:crypto';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { checkWindow } from '../../foundation/identity/grant.ts';
import { agentKey, serviceKey } from '../../foundation/records/keys.ts';
import {
  decodeEndpointsPayload,
  encodeEndpointsPayload,
  fitEndpointsPayload,
  MAX_BOUND_SERVICE_BYTES,
} from '../../foundation/records/payloads.ts';
import { payloadBudget, type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { isCustomType, RECORD } from '../../foundation/records/types.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { Publication, PublicationRow } from '../../foundation/store/publications.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { NodeAddresses } from '../../network/reachability/own-addresses.ts';
import type { NearbyNodes, PutResult } from '../../network/records/types.ts';
import type { DirectoryDependencies, DirectoryOptions, Records } from './types.ts';

/** Milliseconds for all records of one publication. */
const SEND_TIMEOUT_MS = 15_000;
/** Milliseconds to read the record that the network holds. */
const LOOK_TIMEOUT_MS = 3000;
/**
 * Milliseconds for which the last read of an agent is valid, so that consecutive publications do not wait. A newer record
 * from another machine is still found when ours is written.
 */
const LOOK_FRESH_MS = 2000;
/** Records of one agent that are sent concurrently. */
const SIDE_BY_SIDE = 8;
/** Attempts with a higher number if a node holds a newer record. */
const MAX_ROUNDS = 3;

export interface Sent {
  readonly row: PublicationRow;
  readonly record: SignedRecord;
  /** Other nodes that store it. */
  readonly replicas: number;
  /** True if this node stores a copy: see `PutResult.isHere`. */
  readonly isHere: boolean;
  /** Nodes that refused it because of its time. */
  readonly untimely: number;
  /** The digest of the addresses in an endpoint record; null for others. */
  readonly digest: string | null;
}

/** The key of a record that an agent publishes. */
export function keyOf(aid: Aid, { type, name }: Pick<Publication, 'type' | 'name'>): Uint8Array {
  return type === RECORD.service ? serviceKey(name) : agentKey(aid);
}

/** The searches of one publication: one for each key, whose result is read and written. */
export class KeySearches {
  readonly #network: Records;
  readonly #aid: Aid;
  readonly #reads: boolean;
  readonly #nodes = new Map<string, NearbyNodes>();

  /** @param reads the endpoint record of the agent will be read */
  constructor(network: Records, aid: Aid, reads: boolean) {
    this.#network = network;
    this.#aid = aid;
    this.#reads = reads;
  }

  /** The nodes around the key of a record. Starts the search if there is none. */
  at({ type, name }: Pick<Publication, 'type' | 'name'>): NearbyNodes {
    const key = keyOf(this.#aid, { type, name });
    const known = this.#nodes.get(toHex(key));
    if (known !== undefined) return known;
    const nodes = this.#network.near(key, this.#reads && type !== RECORD.service ? RECORD.endpoints : null);
    this.#nodes.set(toHex(key), nodes);
    return nodes;
  }

  /** Ends the searches of a publication that failed. */
  stop(): void {
    for (const nodes of this.#nodes.values()) nodes.stop();
  }
}

export interface SendOptions {
  /** Exceed a higher sequence number that the network holds. */
  readonly mayJump: boolean;
  /** The first of as many sequence numbers as there are rows, if they were assigned already. */
  readonly reserved?: number | null;
  /** From `search` for these rows. */
  readonly searches?: KeySearches;
  /** Called with the final result of a record, if its answer did not wait for that. See `PutOptions.onWhole`. */
  readonly onWhole?: (row: PublicationRow, record: SignedRecord, result: PutResult) => void;
}

interface Attempt extends SendOptions {
  readonly identity: LocalIdentity;
  readonly all: readonly PublicationRow[];
  readonly searches: KeySearches;
  /** The first publication of the agent since the start. */
  readonly first: boolean;
  readonly signal: AbortSignal;
}

interface Round {
  readonly sent: readonly Sent[];
  /** The rows for which a node has a newer record, and the highest number found. */
  readonly beaten: readonly PublicationRow[];
  readonly highest: number;
}

export class RecordPublisher {
  readonly #options: DirectoryOptions;
  readonly #deps: DirectoryDependencies;
  /** When the record of an agent was last read from a working network, in Unix milliseconds. */
  readonly #learned = new Map<Aid, number>();
  readonly #stopped = new AbortController();

  constructor(options: DirectoryOptions, dependencies: DirectoryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /** Cancels running publications. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Forgets a deleted agent. */
  forget(aid: Aid): void {
    this.#learned.delete(aid);
    this.#deps.newAids.forget(aid);
  }

  /** Another node may publish the agent: its record is read from the network before the next publication. */
  doubt(aid: Aid): void {
    if (this.#learned.has(aid) || this.#deps.newAids.has(aid)) this.#learned.set(aid, Number.NEGATIVE_INFINITY);
  }

  /** Starts the searches for the first records of a publication, while other work is done. Pass the result to `send`. */
  search(aid: Aid, wanted: readonly Pick<Publication, 'type' | 'name'>[]): KeySearches {
    const searches = new KeySearches(this.#deps.network, aid, !this.#isFresh(aid));
    if (!this.#stopped.signal.aborted) for (const one of wanted.slice(0, SIDE_BY_SIDE)) searches.at(one);
    return searches;
  }

  /**
   * Sends some of an agent's publications. `all` are all of them.
   * @throws SvcError `stale_sequence` if the network holds a newer record that ours may not exceed; `bad_delegation` if
   *   ours is not valid now; `timeout`; `not_found` if the agent was deleted
   */
  async send(
    identity: LocalIdentity,
    rows: readonly PublicationRow[],
    all: readonly PublicationRow[],
    options: SendOptions,
  ): Promise<readonly Sent[]> {
    const searches = options.searches ?? this.search(identity.aid, rows);
    try {
      checkWindow(identity.delegation, unixSeconds(this.#deps.clock));
      using limit = awakeTimeout(this.#deps.clock, SEND_TIMEOUT_MS, this.#stopped.signal);
      const { signal } = limit;
      if (signal.aborted) throw abortError(signal);
      const attempt = { ...options, identity, all, searches, first: !this.#learned.has(identity.aid), signal };
      return await abortable(this.#rounds(attempt, rows), signal);
    } catch (error) {
      searches.stop();
      throw error;
    }
  }

  /** Sends all rows. A row with a newer record in the network is sent again, with a higher number. */
  async #rounds(attempt: Attempt, rows: readonly PublicationRow[]): Promise<readonly Sent[]> {
    let floor = await this.#look(attempt);
    const sent = new Map<PublicationRow, Sent>();
    let open = rows;
    for (let round = 0; round < MAX_ROUNDS && open.length > 0; round++) {
      const { reserved = null } = attempt;
      const isHighEnough = round === 0 && reserved !== null && reserved > floor;
      const first = isHighEnough ? reserved : await this.#reserve(attempt, open, floor);
      const { sent: now, beaten, highest } = await this.#round(attempt, open, first);
      for (const one of now) sent.set(one.row, one);
      open = beaten;
      floor = highest;
    }
    return [...sent.values()];
  }

  /** True if the record of an agent was read from the network a moment ago, or does not exist. */
  #isFresh(aid: Aid): boolean {
    const { clock, newAids } = this.#deps;
    const learned = this.#learned.get(aid);
    if (learned === undefined) return newAids.has(aid);
    return clock.monotonic() - learned < LOOK_FRESH_MS;
  }

  async #reserve(
    { identity: { aid } }: Attempt,
    { length }: readonly PublicationRow[],
    floor: number,
  ): Promise<number> {
    checkRoomAbove(floor);
    const { publications } = this.#deps;
    const first = await publications.commit(() => publications.reserve(aid, floor, length), 'now');
    if (first === null) throw noSuchAgent(aid);
    return first;
  }

  /** Reads the endpoint record that the network holds. Returns the number to exceed. */
  async #look(attempt: Attempt): Promise<number> {
    const { network } = this.#deps;
    const { aid } = attempt.identity;
    // The numbers assigned since then are higher.
    if (this.#isFresh(aid)) return 0;
    const ready = network.reachability().ready;
    const options = { thorough: attempt.first, timeoutMs: LOOK_TIMEOUT_MS, signal: attempt.signal };
    const held = await attempt.searches.at({ type: RECORD.endpoints, name: '' }).get(RECORD.endpoints, options);
    const floor = held === null ? 0 : this.#pass(attempt, held);
    if (ready) this.#learned.set(aid, this.#deps.clock.monotonic());
    return floor;
  }

  /** The number to exceed, given the endpoint record that the network holds. Throws if ours may not exceed it. */
  #pass({ identity, all, mayJump, first }: Attempt, held: SignedRecord): number {
    const place = sequencePosition(held, {
      nodeKey: this.#options.nodeKey,
      issuedAt: identity.delegation.issuedAt,
      seq: this.#deps.publications.publisher(identity.aid)?.seq ?? 0,
      publishedSeq: all.find((row) => row.type === RECORD.endpoints)?.seq ?? 0,
    });
    if (place.kind === 'superseded') throw this.#superseded(held);
    if (place.kind === 'clear') return 0;
    // This node published it before a restored backup. That is possible once after a start.
    if (mayJump || (place.ours && first)) return place.seq;
    throw new SvcError('stale_sequence');
  }

  #superseded({ aid, delegation }: SignedRecord): SvcError {
    this.#deps.seen?.note(aid, delegation.issuedAt);
    return supersededError();
  }

  /** @param first the first sequence number */
  async #round(attempt: Attempt, rows: readonly PublicationRow[], first: number): Promise<Round> {
    const { identity, all } = attempt;
    const records = rows.map((row, i) => ({ row, ...this.#sign(identity, row, all, first + i) }));
    const sent: Sent[] = [];
    const beaten: PublicationRow[] = [];
    let highest = 0;
    for (let at = 0; at < records.length; at += SIDE_BY_SIDE) {
      const part = records.slice(at, at + SIDE_BY_SIDE);
      const results = await Promise.all(part.map(async ({ row, record }) => this.#put(row, record, attempt)));
      for (const [i, { row, record, digest }] of part.entries()) {
        const { replicas = 0, newer = null, isHere = false, refused = {} } = results[i] ?? {};
        sent.push({ row, record, replicas, isHere, untimely: refused['not_now'] ?? 0, digest });
        if (newer === null) continue;
        this.doubt(record.aid);
        if (newer.delegation.issuedAt > identity.delegation.issuedAt) throw this.#superseded(newer);
        if (row.type === RECORD.endpoints) this.#pass(attempt, newer);
        beaten.push(row);
        highest = Math.max(highest, newer.seq);
      }
    }
    return { sent, beaten, highest };
  }

  async #put(
    row: PublicationRow,
    record: SignedRecord,
    { searches, signal, onWhole }: Attempt,
  ): Promise<Pick<PutResult, 'replicas' | 'newer' | 'isHere' | 'refused'>> {
    const whole = onWhole && ((result: PutResult) => onWhole(row, record, result));
    const options = whole === undefined ? { signal } : { signal, onWhole: whole };
    try {
      return await searches.at(row).put(record, options);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#deps.log.warn({ aid: record.aid, type: record.type, error }, 'a record could not be published');
      return { replicas: 0, newer: null, refused: {} };
    }
  }

  #sign(
    identity: LocalIdentity,
    row: PublicationRow,
    all: readonly PublicationRow[],
    seq: number,
  ): Pick<Sent, 'record' | 'digest'> {
    const { aid, delegation } = identity;
    const { payload, digest } =
      row.type === RECORD.endpoints ? this.#endpoints(identity, all) : { payload: row.payload, digest: null };
    const timestamp = unixSeconds(this.#deps.clock);
    const record = signRecord({ aid, type: row.type, seq, timestamp, ttl: row.ttl, payload, delegation }, identity);
    return { record, digest };
  }

  #endpoints({ aid, delegation }: LocalIdentity, all: readonly PublicationRow[]) {
    const addresses = this.#deps.ownAddresses.current();
    const digest = endpointDigest(addresses);
    this.#deps.publications.clearOtherDigest(aid, digest);
    const customTypes = all.map((row) => row.type).filter(isCustomType);
    const { nodeKey } = this.#options;
    const service = this.#deps.registry.service(aid);
    const bound = service === '' || service.length > MAX_BOUND_SERVICE_BYTES ? {} : { service };
    const whole = { ...addresses, nodeKey, customTypes, ...bound };
    const payload = encodeEndpointsPayload(fitEndpointsPayload(whole, payloadBudget(RECORD.endpoints, delegation)));
    return { payload, digest };
  }
}

/** Above this, no numbers are left, and only a newer delegation helps. */
const MAX_SEQ: number = Number.MAX_SAFE_INTEGER - 2 ** 32;

/** The state of this node. */
export interface OwnState {
  readonly nodeKey: Uint8Array;
  /** When our delegation was issued, in Unix seconds. */
  readonly issuedAt: number;
  /** The last assigned sequence number. */
  readonly seq: number;
  /** The number of the endpoint record that was acknowledged last; 0 if there was none. */
  readonly publishedSeq: number;
}

/**
 * `clear`: ours will be the newest. `behind`: the network holds a higher number. With `ours`, this node published it before a
 * backup was restored; otherwise the agent runs on another node. `superseded`: it holds a record under a newer delegation,
 * which no number exceeds.
 */
export type SequencePosition =
  | { readonly kind: 'clear' }
  | { readonly kind: 'behind'; readonly seq: number; readonly ours: boolean }
  | { readonly kind: 'superseded' };

/** Compares the endpoint record that the network holds with our own state. */
export function sequencePosition(held: SignedRecord | null, own: OwnState): SequencePosition {
  if (held === null || held.delegation.issuedAt < own.issuedAt) return { kind: 'clear' };
  if (held.delegation.issuedAt > own.issuedAt) return { kind: 'superseded' };
  const payload = decodeEndpointsPayload(held.payload);
  const ours = payload !== null && equalBytes(payload.nodeKey, own.nodeKey);
  // A number that was assigned here without an acknowledgment is ours. With an equal number of another node, the
  // agent also runs there, and the two nodes would replace each other's record.
  const behind = ours ? held.seq > own.seq : held.seq >= own.publishedSeq;
  return behind ? { kind: 'behind', seq: held.seq, ours } : { kind: 'clear' };
}

/** @throws SvcError `stale_sequence` if no number is left above `seq` */
export function checkRoomAbove(seq: number): void {
  if (seq <= MAX_SEQ) return;
  throw new SvcError('stale_sequence', {
    message:
      'The network holds a record of this agent with the highest sequence number. If you did not publish it, the operational key was stolen: register the agent with a newer delegation to another key.',
  });
}

export function supersededError(): SvcError {
  return new SvcError('stale_sequence', {
    message:
      'The network holds a record of this agent under a newer delegation: its key was changed elsewhere. Register the agent here with the newest delegation.',
  });
}

/** Characters of a hash: of 128 bits, in base64url. */
const HASH_CHARS = 22;

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, HASH_CHARS);
}

/** A digest of all addresses. Starts with `reachabilityDigest`. */
export function endpointDigest(addresses: NodeAddresses): string {
  return reachabilityDigest(addresses) + hashOf(addresses);
}

/** A digest of the addresses that other nodes dial. Starts with `addressDigest`. Helpers are found later than addresses. */
export function reachabilityDigest(addresses: NodeAddresses): string {
  const helpers = addresses.helpers.map(({ nodeKey, address }) => [toHex(nodeKey), address]);
  return addressDigest(addresses) + hashOf(helpers);
}

/** A digest of the addresses that every dial needs. More is found in the seconds after the start. */
export function addressDigest({ endpoints, meeting }: NodeAddresses): string {
  return hashOf([endpoints, meeting ?? null]);
}
