/** Signs records and brings them to the network, with sequence numbers that never go back. */
import { toHex } from '../../foundation/bytes.ts';
import { unixSeconds } from '../../foundation/clock.ts';
import { abortable, abortError, deadline } from '../../foundation/deadline.ts';
import { noSuchAgent, SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { checkWindow } from '../../foundation/identity/grant.ts';
import { agentKey, serviceKey } from '../../foundation/records/keys.ts';
import {
  encodeEndpointsPayload,
  fitEndpointsPayload,
  MAX_BOUND_SERVICE_BYTES,
} from '../../foundation/records/payloads.ts';
import { payloadBudget, type SignedRecord, signRecord } from '../../foundation/records/record.ts';
import { isCustomType, RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationRow } from '../../foundation/store/publications.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { NearbyNodes, PutResult } from '../../network/records/types.ts';
import { endpointDigest } from './endpoint-digest.ts';
import { checkRoomAbove, standing, supersededError } from './sequence.ts';
import type { DirectoryDependencies, DirectoryOptions } from './types.ts';

/** Milliseconds for all records of one publication together. */
const SEND_TIMEOUT_MS = 15_000;
/** Milliseconds to learn what the network holds. */
const LOOK_TIMEOUT_MS = 3000;
/**
 * Milliseconds for which what the network was found to hold of an agent is believed: who publishes several times in a row is
 * not kept waiting. Whatever comes from elsewhere meanwhile is met where the record is put.
 */
const LOOK_FRESH_MS = 2000;
/** Records of one agent on their way at once. */
const SIDE_BY_SIDE = 8;
/** How often a record goes out with a higher number where a node holds a newer one. */
const MAX_ROUNDS = 3;

export interface Sent {
  readonly row: PublicationRow;
  readonly record: SignedRecord;
  /** Other nodes that keep it. */
  readonly replicas: number;
  /** True if this node keeps a copy: see `PutResult.isHere`. */
  readonly isHere: boolean;
  /** How many nodes refused it because of its time. */
  readonly untimely: number;
  /** What it says of where this node is, as `saidOf`; null of other records. */
  readonly said: string | null;
}

/** The nodes around the keys of records that are about to go out, by key in hex. */
export type Approach = ReadonlyMap<string, NearbyNodes>;

export interface SendOptions {
  /** Go ahead of a higher number that the network holds. */
  readonly mayJump: boolean;
  /**
   * The first of as many sequence numbers as there are rows, which were given out with what else had to be on disk. The
   * network is asked first all the same: another machine of the agent may have used the same numbers.
   */
  readonly reserved?: number | null;
  /** What `approach` has begun for these rows. */
  readonly near?: Approach;
  /** Told what has become of a record in all, where its answer did not wait for that. See `PutOptions.onWhole`. */
  readonly onWhole?: (row: PublicationRow, record: SignedRecord, result: PutResult) => void;
}

interface Attempt {
  readonly identity: LocalIdentity;
  readonly all: readonly PublicationRow[];
  readonly mayJump: boolean;
  /** What the network held was not known before. */
  readonly first: boolean;
  readonly signal: AbortSignal;
  /** The first of the numbers that were given out for it already; null where none were. */
  readonly reserved: number | null;
  readonly near: Approach;
  readonly onWhole: SendOptions['onWhole'];
}

interface Round {
  readonly sent: readonly Sent[];
  /** The rows whose records were not the newest ones, and the highest number that was met. */
  readonly beaten: readonly PublicationRow[];
  readonly highest: number;
}

export class RecordPublisher {
  readonly #options: DirectoryOptions;
  readonly #deps: DirectoryDependencies;
  /** Agents of which we know what a working network held, since this process started, and when: Unix milliseconds. */
  readonly #learned = new Map<Aid, number>();
  readonly #stopped = new AbortController();

  constructor(options: DirectoryOptions, dependencies: DirectoryDependencies) {
    this.#options = options;
    this.#deps = dependencies;
  }

  /** Gives up what is under way: it fails with `cancelled`. */
  stop(): void {
    this.#stopped.abort();
  }

  /** Forgets an agent that is no longer here. */
  forget(aid: Aid): void {
    this.#learned.delete(aid);
    this.#deps.newAids.forget(aid);
  }

  /** To be called where something newer of an agent came to light: before its next publication the network is asked again. */
  doubt(aid: Aid): void {
    if (this.#learned.has(aid) || this.#deps.newAids.has(aid)) this.#learned.set(aid, Number.NEGATIVE_INFINITY);
  }

  /**
   * Begins to search for the nodes that are to get the first records of a publication: meanwhile other things can be done.
   * What it returns is given to `send`, or to `leave`.
   */
  approach(aid: Aid, wanted: readonly Pick<Publication, 'type' | 'name'>[]): Approach {
    const near = new Map<string, NearbyNodes>();
    const isRead = !this.#knows(aid);
    if (this.#stopped.signal.aborted) return near;
    for (const one of wanted.slice(0, SIDE_BY_SIDE)) {
      const key = keyOf(aid, one);
      const name = toHex(key);
      // Endpoint records stand under the same key as the others of the agent, and say what the network holds of it.
      const type = isRead && one.type !== RECORD.service ? RECORD.endpoints : null;
      if (!near.has(name)) near.set(name, this.#deps.network.near(key, type));
    }
    return near;
  }

  /** Ends the searches of a publication that does not come about. */
  leave(near: Approach): void {
    for (const nodes of near.values()) nodes.stop();
  }

  /**
   * Publishes some of an agent's publications; `all` are all of them.
   * @throws SvcError `stale_sequence` where the network holds a newer record that stays ahead;
   *   `bad_delegation` where ours is not in force; `timeout`; `not_found` where the agent is gone
   */
  async send(
    identity: LocalIdentity,
    rows: readonly PublicationRow[],
    all: readonly PublicationRow[],
    { mayJump, reserved = null, near = this.approach(identity.aid, rows), onWhole }: SendOptions,
  ): Promise<readonly Sent[]> {
    try {
      checkWindow(identity.delegation, unixSeconds(this.#deps.clock));
      using limit = deadline(this.#deps.clock, SEND_TIMEOUT_MS, this.#stopped.signal);
      const { signal } = limit;
      if (signal.aborted) throw abortError(signal);
      const first = !this.#learned.has(identity.aid);
      const attempt = { identity, all, mayJump, first, signal, reserved, near, onWhole };
      return await abortable(this.#rounds(attempt, rows), signal);
    } catch (error) {
      this.leave(near);
      throw error;
    }
  }

  /** Sends until nothing is open: what the network has a newer version of goes again, above it. */
  async #rounds(attempt: Attempt, rows: readonly PublicationRow[]): Promise<readonly Sent[]> {
    let floor = await this.#look(attempt);
    const sent = new Map<PublicationRow, Sent>();
    let open = rows;
    for (let round = 0; round < MAX_ROUNDS && open.length > 0; round++) {
      const { reserved } = attempt;
      const isHighEnough = round === 0 && reserved !== null && reserved > floor;
      const first = isHighEnough ? reserved : await this.#reserve(attempt, open, floor);
      const { sent: now, beaten, highest } = await this.#round(attempt, open, first);
      for (const one of now) sent.set(one.row, one);
      open = beaten;
      floor = highest;
    }
    return [...sent.values()];
  }

  /** Whether it was known a moment ago what the network holds of an agent. */
  #knows(aid: Aid): boolean {
    const { clock, newAids } = this.#deps;
    const learned = this.#learned.get(aid);
    if (learned === undefined) return newAids.has(aid);
    const age = clock.now() - learned;
    return age >= 0 && age < LOOK_FRESH_MS;
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

  /** Learns what the network holds of the agent; returns the number to go above. */
  async #look(attempt: Attempt): Promise<number> {
    const { network } = this.#deps;
    const { aid } = attempt.identity;
    // The numbers that were given out for it are above what was found then.
    if (this.#knows(aid)) return 0;
    const ready = network.reachability().ready;
    const key = agentKey(aid);
    const options = { thorough: attempt.first, timeoutMs: LOOK_TIMEOUT_MS, signal: attempt.signal };
    const near = attempt.near.get(toHex(key));
    const held = await (near === undefined
      ? network.get(key, RECORD.endpoints, options)
      : near.get(RECORD.endpoints, options));
    const floor = held === null ? 0 : this.#pass(attempt, held);
    if (ready) this.#learned.set(aid, this.#deps.clock.now());
    return floor;
  }

  /** Decides about an endpoint record that the network holds: the number to go above, or no publication. */
  #pass({ identity, all, mayJump, first }: Attempt, held: SignedRecord): number {
    const place = standing(held, {
      nodeKey: this.#options.nodeKey,
      issuedAt: identity.delegation.issuedAt,
      seq: this.#deps.publications.publisher(identity.aid)?.seq ?? 0,
      publishedSeq: all.find((row) => row.type === RECORD.endpoints)?.seq ?? 0,
    });
    if (place.kind === 'superseded') throw this.#superseded(held);
    if (place.kind === 'clear') return 0;
    // What our own node published and does not remember is from before a restored backup, once after a start.
    if (mayJump || (place.ours && first)) return place.seq;
    throw new SvcError('stale_sequence');
  }

  #superseded({ aid, delegation }: SignedRecord): SvcError {
    this.#deps.noteDelegation?.(aid, delegation.issuedAt);
    return supersededError();
  }

  /** @param first the sequence number of the first of them */
  async #round(attempt: Attempt, rows: readonly PublicationRow[], first: number): Promise<Round> {
    const { identity, all } = attempt;
    const records = rows.map((row, i) => ({ row, ...this.#sign(identity, row, all, first + i) }));
    const sent: Sent[] = [];
    const beaten: PublicationRow[] = [];
    let highest = 0;
    for (let at = 0; at < records.length; at += SIDE_BY_SIDE) {
      const part = records.slice(at, at + SIDE_BY_SIDE);
      const results = await Promise.all(part.map(async ({ row, record }) => this.#put(row, record, attempt)));
      for (const [i, { row, record, said }] of part.entries()) {
        const { replicas = 0, newer = null, isHere = false, refused = {} } = results[i] ?? {};
        sent.push({ row, record, replicas, isHere, untimely: refused['not_now'] ?? 0, said });
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
    { near, signal, onWhole }: Attempt,
  ): Promise<Pick<PutResult, 'replicas' | 'newer' | 'isHere' | 'refused'>> {
    const key = keyOf(record.aid, row);
    const nodes = near.get(toHex(key));
    const told = onWhole && ((result: PutResult) => onWhole(row, record, result));
    const options = told === undefined ? { signal } : { signal, onWhole: told };
    try {
      return await (nodes === undefined ? this.#deps.network.put(key, record, options) : nodes.put(record, options));
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
  ): Pick<Sent, 'record' | 'said'> {
    const { aid, delegation } = identity;
    const { payload, said } =
      row.type === RECORD.endpoints ? this.#endpoints(identity, all) : { payload: row.payload, said: null };
    const timestamp = unixSeconds(this.#deps.clock);
    const record = signRecord({ aid, type: row.type, seq, timestamp, ttl: row.ttl, payload, delegation }, identity);
    return { record, said };
  }

  #endpoints({ aid, delegation }: LocalIdentity, all: readonly PublicationRow[]) {
    const addresses = this.#deps.addresses();
    const said = endpointDigest(addresses);
    this.#deps.publications.clearOtherDigest(aid, said);
    const customTypes = all.map((row) => row.type).filter(isCustomType);
    const { nodeKey } = this.#options;
    const service = this.#deps.serviceOf(aid);
    const bound = service === '' || service.length > MAX_BOUND_SERVICE_BYTES ? {} : { service };
    const whole = { ...addresses, nodeKey, customTypes, ...bound };
    const payload = encodeEndpointsPayload(fitEndpointsPayload(whole, payloadBudget(RECORD.endpoints, delegation)));
    return { payload, said };
  }
}

/** Under which key a record stands on the network. */
function keyOf(aid: Aid, { type, name }: Pick<Publication, 'type' | 'name'>): Uint8Array {
  return type === RECORD.service ? serviceKey(name) : agentKey(aid);
}
