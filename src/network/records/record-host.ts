/**
 * Stores records for other nodes and answers their requests. All input is untrusted: records are verified first, and
 * unverified addresses get no large answers.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { Semaphore } from '../../foundation/concurrency.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { sourceGroupOf } from '../../foundation/quota.ts';
import { type Rate, RateLimiter, RateQuota, type RateQuotaLimits } from '../../foundation/rate-limit.ts';
import { belongsUnderKey, KEY_BYTES } from '../../foundation/records/keys.ts';
import { decodeRecord, isValidAt, MAX_RECORD_BYTES } from '../../foundation/records/record.ts';
import { MAX_DATAGRAM_RECORD_BYTES, RECORD, RECORD_DIGEST_BYTES } from '../../foundation/records/types.ts';
import type { RecordVerifier } from '../../foundation/records/verifier.ts';
import { GroupCommit } from '../../foundation/store/group-commit.ts';
import type { DhtEngine } from './engine.ts';
import type { StoredRecord } from './key-rows.ts';
import {
  COMMAND,
  DATAGRAM_OVERHEAD_BYTES,
  decodeFindRequest,
  decodeNodeRequest,
  decodeProbeRequest,
  decodeRemoveRequest,
  encodeFindReply,
  encodePage,
  encodeRemoveReply,
  encodeStoreReply,
  type FindRequest,
  MAX_NODES_PER_REPLY,
  MAX_REFLECTION_FACTOR,
  MAX_SENT_DATAGRAM_BYTES,
  MAX_SUMMARIES,
  NODE_BYTES,
  PAGE_BYTES,
  RECORD_FRAME_BYTES,
  REQUEST_OVERHEAD_BYTES,
  replyRoom,
  type StoreReply,
  SUMMARY_BYTES,
  type Summary,
} from './messages.ts';
import { hostHolder } from './node-address.ts';
import { type Offer, RECORDS_PER_COMMIT, type RecordStore } from './record-store.ts';
import type { RpcRequest } from './rpc/rpc.ts';
import { ReadTurns } from './turns.ts';
import type { NoteRemoval } from './types.ts';

/** Records that one address, and one network, may store here. */
const STORE_RATES: RateQuotaLimits = {
  perKey: { perSecond: 50, burst: 1500 },
  perNetwork: { perSecond: 150, burst: 4500 },
};
/** Pages that one address, and one network, may read. */
const PAGE_RATES: RateQuotaLimits = {
  perKey: { perSecond: 20, burst: 200 },
  perNetwork: { perSecond: 60, burst: 600 },
};
/** Rows that may be read from the database for one proven address, and one network. Rows in memory are free. */
const ROW_RATES: RateQuotaLimits = {
  perKey: { perSecond: 10_000, burst: 20_000 },
  perNetwork: { perSecond: 20_000, burst: 40_000 },
};
/** The same for all proven addresses: beyond this rate, networks take turns … */
const PROVEN_ROWS: Rate = { perSecond: 40_000, burst: 80_000 };
/** … and for all other addresses, which can be forged. Beyond this rate they must prove their address first. */
export const UNPROVEN_ROWS: Rate = { perSecond: 4000, burst: 8000 };
/** The only bucket of unproven addresses. */
const UNPROVEN = '';
/** Cost of a database query without its rows, in rows. */
const LOOK_ROWS = 10;
/** Records that are verified concurrently. More are refused, so that a flood costs no memory. */
const MAX_VERIFYING = 256;
/** Maximum number of records in an answer if a key has many publishers. */
const MAX_INLINE = 4;
/** The answer to requests for closer nodes only. */
const NOTHING = { count: 0, digest: new Uint8Array(RECORD_DIGEST_BYTES) };
/**
 * A record is refused if this node knows this number of closer nodes. Publishers know other nodes, and may write beyond
 * the closest.
 */
const MAX_CLOSER_NODES = 60;

/** The requester, the length of the request, and whether the address is verified. */
export interface Asking {
  /** As `DhtEngine.sourceOf` or `sourceKeyOf`. */
  readonly from: string;
  readonly bytes: number;
  readonly proven: boolean;
}

/** The outcome of a read: permitted, refused, or only for a proven address. */
type Permission = 'yes' | 'no' | 'prove';

interface RecordHostOptions {
  readonly nodeKey: Uint8Array;
  readonly tag: Uint8Array;
}

export class RecordHost {
  readonly #options: RecordHostOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #verifier: RecordVerifier;
  /** The port at which other nodes reach us over QUIC; 0 without QUIC. */
  readonly #quicPort: () => number;
  readonly #store: RecordStore;
  readonly #engine: Pick<DhtEngine, 'ownAddress' | 'closerThanSelf' | 'closest'>;
  readonly #storeRate: RateQuota;
  readonly #pageRate: RateQuota;
  readonly #rowRate: RateQuota;
  readonly #reads: ReadTurns;
  readonly #unproven: RateLimiter;
  /** Pages are built one at a time. Other work has its turn in between. */
  readonly #pages = new Semaphore(1);
  /** Records that arrive together are stored in one transaction, few enough that other work has its turn in between. */
  readonly #offers: GroupCommit;
  /** Records that are being verified on other threads. */
  #verifying = 0;

  constructor(
    options: RecordHostOptions,
    clock: Clock,
    log: Log,
    verifier: RecordVerifier,
    quicPort: () => number,
    store: RecordStore,
    engine: Pick<DhtEngine, 'ownAddress' | 'closerThanSelf' | 'closest'>,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#verifier = verifier;
    this.#quicPort = quicPort;
    this.#store = store;
    this.#engine = engine;
    this.#offers = new GroupCommit((work) => store.transaction(work), { maxWrites: RECORDS_PER_COMMIT });
    this.#storeRate = new RateQuota(STORE_RATES, { clock });
    this.#pageRate = new RateQuota(PAGE_RATES, { clock });
    this.#rowRate = new RateQuota(ROW_RATES, { clock });
    this.#reads = new ReadTurns(PROVEN_ROWS, { clock });
    this.#unproven = new RateLimiter({ ...UNPROVEN_ROWS, maxKeys: 1 }, { clock });
  }

  /** Waiting reads get no answer. */
  stop(): void {
    this.#reads.stop();
  }

  /**
   * The answer to a FIND of `requestBytes`: records that fit, then closer nodes. Null if the requester has read too
   * much, or if even the shortest answer is too long for an unverified address; `prove` if the requester must show a
   * token.
   */
  async find(key: Uint8Array, request: FindRequest, asking: Asking): Promise<Uint8Array | null | 'prove'> {
    const permission = request.wantsRecords ? await this.#mayRead(key, asking) : 'yes';
    if (permission === 'yes') return this.#find(key, request, asking);
    return permission === 'prove' ? 'prove' : null;
  }

  #find(key: Uint8Array, request: FindRequest, { bytes: requestBytes, proven }: Asking): Uint8Array | null {
    const largest = proven
      ? MAX_SENT_DATAGRAM_BYTES
      : Math.min(MAX_SENT_DATAGRAM_BYTES, requestBytes * MAX_REFLECTION_FACTOR);
    let room = replyRoom(largest - DATAGRAM_OVERHEAD_BYTES);
    const { count, digest } = request.wantsRecords ? this.#store.summarize(key, request) : NOTHING;
    const describes = count <= MAX_SUMMARIES;
    const found = count === 0 ? [] : this.#store.find(key, request, describes ? MAX_SUMMARIES : MAX_INLINE);
    const records: Uint8Array[] = [];
    const left: StoredRecord[] = [];
    for (const row of found) {
      const bytes = row.bytes + RECORD_FRAME_BYTES;
      const encoded = bytes <= room ? this.#store.encoded(row) : null;
      if (encoded === null) left.push(row);
      else {
        records.push(encoded);
        room -= bytes;
      }
    }
    const summaries: Summary[] = describes && left.length * SUMMARY_BYTES <= room ? left : [];
    room -= summaries.length * SUMMARY_BYTES;
    const nodes = this.#engine.closest(key, Math.max(0, Math.min(MAX_NODES_PER_REPLY, Math.floor(room / NODE_BYTES))));
    const { nodeKey } = this.#options;
    const time = unixSeconds(this.#clock);
    const held = { count, digest, records, summaries };
    const reply = encodeFindReply({ nodeKey, quicPort: this.#quicPort(), nodes, ...held, time });
    // The smallest requests get no answer. svcd sends none that small.
    return reply.length + DATAGRAM_OVERHEAD_BYTES <= largest ? reply : null;
  }

  /** Reads the rows of a key into memory, unless they are there, if this requester may read them. */
  async #mayRead(key: Uint8Array, { from, proven }: Pick<Asking, 'from' | 'proven'>): Promise<Permission> {
    if (this.#store.isAtHand(key)) return 'yes';
    if (!proven) {
      if (!this.#unproven.take(UNPROVEN, LOOK_ROWS)) return 'prove';
      this.#unproven.spend(UNPROVEN, this.#store.readAhead(key));
      return 'yes';
    }
    const holder = hostHolder(from);
    if (!this.#rowRate.take(holder, LOOK_ROWS)) return 'no';
    const { network } = sourceGroupOf(from);
    const isRead = await this.#reads.run(network, () => {
      const rows = this.#store.readAhead(key);
      this.#rowRate.spend(holder, rows);
      return LOOK_ROWS + rows;
    });
    return isRead ? 'yes' : 'no';
  }

  /**
   * Stores a record from a verified address.
   * @param publisher whose share it uses, as `DhtEngine.sourceOf` or `sourceKeyOf`
   */
  async store(key: Uint8Array, encoded: Uint8Array, publisher: string, maxRecordBytes: number): Promise<Uint8Array> {
    const reply = await this.#offer(key, encoded, publisher);
    const fits = (reply.record?.length ?? 0) <= maxRecordBytes;
    return encodeStoreReply(fits ? reply : { code: reply.code });
  }

  async #offer(key: Uint8Array, encoded: Uint8Array, publisher: string): Promise<StoreReply> {
    // protocol-dht.md, step 6
    if (this.#verifying >= MAX_VERIFYING || !this.#storeRate.take(hostHolder(publisher))) return { code: 'limited' };
    if (this.#engine.ownAddress !== null && this.#engine.closerThanSelf(key) >= MAX_CLOSER_NODES)
      return { code: 'misplaced' };
    this.#verifying++;
    const now = unixSeconds(this.#clock);
    let isUntimely = false;
    try {
      const record = decodeRecord(Uint8Array.from(encoded));
      isUntimely = !isValidAt(record, now);
      if (!belongsUnderKey(record, key)) return { code: 'misplaced' };
      await this.#verifier.verifyAsync(record, now);
      const offer = await this.#offers.run(() => this.#store.offer(key, record, publisher));
      // Notes are not sent again after an acknowledgement. Other records are renewed by their publishers.
      if (record.type === RECORD.note && offer.code === 'kept' && !(await this.#isSure())) return { code: 'full' };
      return replyTo(offer);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      this.#log.debug({ from: publisher, reason: error.message }, 'refused a record that does not verify');
      // The publisher learns that the clocks differ.
      return { code: isUntimely ? 'not_now' : 'bad' };
    } finally {
      this.#verifying--;
    }
  }

  /** Waits until the stored records are on disk. False if the disk refuses. */
  async #isSure(): Promise<boolean> {
    try {
      await this.#store.sure();
      return true;
    } catch (error) {
      this.#log.warn({ error }, 'a stored note is not on disk');
      return false;
    }
  }

  /** Answers a request over QUIC. The answer is empty if the request is invalid or from another network. */
  async answerNode(body: Uint8Array, from: string): Promise<Uint8Array> {
    const nothing = new Uint8Array();
    const request = decodeNodeRequest(body);
    if (request === null || !equalBytes(request.tag, this.#options.tag)) return nothing;
    if (request.kind === 'store') return await this.store(request.key, request.record, from, MAX_RECORD_BYTES);
    if (!this.#pageRate.take(hostHolder(from))) return nothing;
    const selection = { types: request.types, known: knownDigests(request.known) };
    await this.#pages.run(() => turn());
    if ((await this.#mayRead(request.key, { from, proven: true })) !== 'yes') return nothing;
    return await this.#pages.run(async () => {
      await turn();
      return encodePage(this.#store.page(request.key, selection, request.from, PAGE_BYTES));
    });
  }

  /** Removes the notes whose tokens are shown. Returns how many, or null if the rate is exceeded. */
  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[], from: string): number | null {
    return this.#storeRate.take(hostHolder(from), removals.length) ? this.#store.removeNotes(key, removals) : null;
  }
}

function replyTo(offer: Offer): StoreReply {
  if (offer.code === 'removed') return offer;
  const held = offer.code === 'newer' ? offer.held : null;
  return { code: offer.code, ...(held === null ? {} : { record: held.encoded }) };
}

/** Splits concatenated digests. */
function knownDigests(known: Uint8Array = new Uint8Array()): ReadonlySet<string> {
  const digests = new Set<string>();
  for (let at = 0; at < known.length; at += RECORD_DIGEST_BYTES)
    digests.add(toHex(known.subarray(at, at + RECORD_DIGEST_BYTES)));
  return digests;
}

/** Answers the datagrams of other nodes. Invalid requests get no answer. */
export class NodeServer {
  readonly #log: Log;
  readonly #host: RecordHost;
  readonly #engine: Pick<DhtEngine, 'answerProbe' | 'sourceOf'>;

  constructor(log: Log, host: RecordHost, engine: Pick<DhtEngine, 'answerProbe' | 'sourceOf'>) {
    this.#log = log;
    this.#host = host;
    this.#engine = engine;
  }

  /** Answers a request; never rejects. */
  async onRequest(request: RpcRequest): Promise<void> {
    try {
      await this.#answer(request);
    } catch (error) {
      this.#log.warn({ error }, 'a request could not be answered');
    }
  }

  async #answer(request: RpcRequest): Promise<void> {
    const { command, target, value, token } = request;
    if (value === null) return;
    if (command === COMMAND.probe) return this.#onProbe(request, value);
    if (target?.length !== KEY_BYTES) return;
    if (command === COMMAND.find) return await this.#onFind(request, target, value);
    // Changes need a verified address.
    if (token === null) return;
    if (command === COMMAND.store) return await this.#onStore(request, target, value);
    if (command === COMMAND.remove) return this.#onRemove(request, target, value);
  }

  #onProbe(request: RpcRequest, value: Uint8Array): void {
    const probe = decodeProbeRequest(value);
    if (probe !== null) this.#engine.answerProbe(request, probe.port, probe.otherSocket);
  }

  async #onFind(request: RpcRequest, key: Uint8Array, value: Uint8Array): Promise<void> {
    const find = decodeFindRequest(value);
    if (find === null) return;
    const asking = {
      from: this.#engine.sourceOf(request.from),
      bytes: value.length + REQUEST_OVERHEAD_BYTES,
      proven: request.token !== null,
    };
    const answer = await this.#host.find(key, find, asking);
    if (answer === 'prove') request.askForToken();
    else if (answer !== null) request.reply(answer);
  }

  async #onStore(request: RpcRequest, key: Uint8Array, value: Uint8Array): Promise<void> {
    if (value.length > MAX_DATAGRAM_RECORD_BYTES) return;
    const reply = await this.#host.store(key, value, this.#engine.sourceOf(request.from), MAX_DATAGRAM_RECORD_BYTES);
    request.reply(reply, { token: false });
  }

  #onRemove(request: RpcRequest, key: Uint8Array, value: Uint8Array): void {
    const removals = decodeRemoveRequest(value);
    const count = removals === null ? null : this.#host.removeNotes(key, removals, this.#engine.sourceOf(request.from));
    if (count !== null) request.reply(encodeRemoveReply(count), { token: false });
  }
}
