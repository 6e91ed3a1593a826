/** What hostile nodes say: that they are alive, that only their like are near, and about records what suits them. */
import { randomBytes } from 'node:crypto';
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { RECORD_DIGEST_BYTES } from '../../../src/foundation/records/types.ts';
import { COMMAND, encodeFindReply, encodeRemoveReply, encodeStoreReply } from '../../../src/network/dht/messages.ts';
import { NETWORK_TAG_BYTES, networkTag } from '../../../src/network/dht/wire.ts';
import { Random } from '../random.ts';
import { closestPlaces, distance, type Place, phantomsNear } from './places.ts';

/** The engine's own commands, its first bytes, its flags, and where what stands in its datagrams. */
const FIND_NODE = 2;
const REQUEST_BYTE = 0x03;
const ANSWER_BYTE = 0x13;
const FLAG = { id: 1, token: 2, internal: 4, target: 8, value: 16, closer: 4 } as const;
const ID_BYTES = 32;
/** Nodes that an answer names. */
const NAMED = 17;

/**
 * What they say when they are asked for records: that there are none, that there is what they made up, what was
 * published first instead of what is newest, so many that nobody gets through them; or nothing at all.
 */
export type Lie = 'nothing' | 'other' | 'stale' | 'many' | 'silent';

export interface HostileRequest {
  readonly tid: Uint8Array;
  readonly internal: boolean;
  readonly command: number;
  readonly target: Uint8Array | null;
  readonly value: Uint8Array | null;
}

function packed(host: string, port: number): Uint8Array {
  return Uint8Array.from([...host.split('.').map(Number), port & 0xff, port >> 8]);
}

/** A request of the engine's protocol; null for an answer, and for what is none. */
export function readRequest(datagram: Buffer): HostileRequest | null {
  let at = NETWORK_TAG_BYTES;
  if (datagram[at] !== REQUEST_BYTE) return null;
  const flags = datagram[at + 1] ?? 0;
  const tid = datagram.subarray(at + 2, at + 4);
  at += 10;
  for (const flag of [FLAG.id, FLAG.token]) if ((flags & flag) !== 0) at += ID_BYTES;
  const command = datagram[at] ?? 0;
  at++;
  const target = (flags & FLAG.target) === 0 ? null : datagram.subarray(at, at + ID_BYTES);
  at += target === null ? 0 : ID_BYTES;
  let value: Uint8Array | null = null;
  if ((flags & FLAG.value) !== 0) {
    const short = datagram[at] ?? 0;
    value = short < 0xfd ? datagram.subarray(at + 1) : datagram.subarray(at + 3);
  }
  return { tid, internal: (flags & FLAG.internal) !== 0, command, target, value };
}

/** A ping that says: this is a node. */
export function greeting(from: Place, to: { readonly host: string; readonly port: number }, tag: Uint8Array): Buffer {
  const head = Buffer.from([REQUEST_BYTE, FLAG.id | FLAG.internal, 1, 1]);
  return Buffer.concat([tag, head, packed(to.host, to.port), from.id, Buffer.from([0])]);
}

/**
 * Whom they name as nearer: their like, or addresses at which nobody is, which cost nothing: in networks of anybody, or
 * in those of the honest nodes that are nearest.
 */
export type Naming = 'own' | 'phantoms' | 'neighbours';

/** How they behave, which can change. */
export interface Manner {
  readonly lie: Lie;
  readonly names: Naming;
  /** How long an answer about records takes, milliseconds. */
  readonly delayMs: number;
}

export interface Crowd {
  readonly keys: readonly Uint8Array[];
  /** The wide networks of the honest nodes nearest to each key. */
  readonly neighbours: readonly (readonly string[])[];
  /** Tell joining nodes a wrong address as theirs. */
  readonly misplaces: boolean;
  readonly places: readonly Place[];
  readonly network: string;
  /** Records of the attacker's own, by the key that they belong under, in hex. */
  readonly own: ReadonlyMap<string, Uint8Array>;
}

export class HostileAnswers {
  readonly tag: Uint8Array;
  manner: Manner = { lie: 'nothing', names: 'own', delayMs: 0 };
  readonly #crowd: Crowd;
  readonly #attacked: ReadonlySet<string>;
  readonly #sorted: readonly Place[];
  readonly #named = new Map<string, readonly Place[]>();
  /** The first record that was given to any of them, by key. */
  readonly #first = new Map<string, Uint8Array>();
  readonly #phantoms = new Map<string, readonly Place[]>();
  readonly #random = new Random(7);
  readonly #nodeKeys = new Map<Place, Uint8Array>();
  /** Records that they were given to keep, by key. */
  readonly taken = new Map<string, number>();

  constructor(crowd: Crowd) {
    this.#crowd = crowd;
    this.tag = networkTag(crowd.network);
    this.#attacked = new Set(crowd.keys.map(toHex));
    const zero = new Uint8Array(ID_BYTES);
    this.#sorted = crowd.places.toSorted((a, b) => distance(zero, a.id) - distance(zero, b.id));
  }

  /** The datagram with which one of them answers; null where it keeps silent. */
  answer(as: Place, request: HostileRequest, to: { readonly host: string; readonly port: number }): Buffer | null {
    const { internal, command, target } = request;
    if (internal)
      return this.#datagram(as, request, to, null, command === FIND_NODE && target ? this.#near(target) : []);
    if (command === COMMAND.probe) return this.#datagram(as, request, to, null, []);
    if (target === null) return null;
    if (command === COMMAND.find) {
      const value = this.#find(as, target);
      return value && this.#datagram(as, request, to, value, []);
    }
    if (command === COMMAND.store) {
      const key = toHex(target);
      this.taken.set(key, (this.taken.get(key) ?? 0) + 1);
      if (request.value !== null && !this.#first.has(key)) this.#first.set(key, Uint8Array.from(request.value));
      return this.#datagram(as, request, to, encodeStoreReply({ code: 'kept' }), []);
    }
    return this.#datagram(as, request, to, encodeRemoveReply(0), []);
  }

  /** The likes of them that are near a key. */
  #near(target: Uint8Array): readonly Place[] {
    const name = toHex(target);
    const phantoms = this.#phantomsNear(target);
    if (phantoms !== null) return Array.from({ length: NAMED }, () => this.#random.pick(phantoms));
    const known = this.#named.get(name);
    if (known !== undefined) return known;
    const near = closestPlaces(target, this.#neighbours(target), NAMED);
    this.#named.set(name, near);
    return near;
  }

  #phantomsNear(target: Uint8Array): readonly Place[] | null {
    const { names } = this.manner;
    const { keys, neighbours } = this.#crowd;
    const nth = keys.findIndex((key) => equalBytes(key, target));
    if (names === 'own' || nth < 0) return null;
    const name = `${names}.${nth}`;
    let phantoms = this.#phantoms.get(name);
    if (phantoms === undefined) {
      phantoms = phantomsNear(target, names === 'neighbours' ? neighbours[nth] : []);
      this.#phantoms.set(name, phantoms);
    }
    return phantoms;
  }

  /** Those among which the closest ones are: what stands around a target in the order of ids. */
  #neighbours(target: Uint8Array): readonly Place[] {
    const zero = new Uint8Array(ID_BYTES);
    const at = distance(zero, target);
    const next = this.#sorted.findIndex(({ id }) => distance(zero, id) >= at);
    const middle = next < 0 ? this.#sorted.length : next;
    return this.#sorted.slice(Math.max(0, middle - 4 * NAMED), middle + 4 * NAMED);
  }

  #find(as: Place, target: Uint8Array): Uint8Array | null {
    const { own } = this.#crowd;
    const { lie } = this.manner;
    const key = toHex(target);
    const isAttacked = this.#attacked.has(key);
    if (lie === 'silent' && isAttacked) return null;
    const record = (lie === 'other' ? own.get(key) : lie === 'stale' ? this.#first.get(key) : undefined) ?? null;
    const many = lie === 'many' && isAttacked;
    return encodeFindReply({
      nodeKey: this.#nodeKey(as),
      quicPort: 0,
      nodes: this.#near(target),
      count: many ? 1000 : record === null ? 0 : 1,
      digest: many
        ? randomBytes(RECORD_DIGEST_BYTES)
        : record === null
          ? new Uint8Array(RECORD_DIGEST_BYTES)
          : recordDigest(record),
      records: record === null ? [] : [record],
      summaries: [],
      time: Math.floor(Date.now() / 1000),
    });
  }

  #nodeKey(place: Place): Uint8Array {
    let key = this.#nodeKeys.get(place);
    if (key === undefined) this.#nodeKeys.set(place, (key = randomBytes(32)));
    return key;
  }

  #datagram(
    as: Place,
    { tid }: HostileRequest,
    to: { readonly host: string; readonly port: number },
    value: Uint8Array | null,
    closer: readonly Place[],
  ): Buffer {
    const flags = FLAG.id | FLAG.token | (closer.length > 0 ? FLAG.closer : 0) | (value === null ? 0 : FLAG.value);
    const length =
      value === null ? [] : value.length < 0xfd ? [value.length] : [0xfd, value.length & 0xff, value.length >> 8];
    return Buffer.concat([
      this.tag,
      Uint8Array.of(ANSWER_BYTE, flags),
      tid,
      this.#crowd.misplaces ? packed('45.45.45.45', to.port) : packed(to.host, to.port),
      as.id,
      new Uint8Array(ID_BYTES),
      ...(closer.length > 0
        ? [Uint8Array.of(closer.length), ...closer.map(({ host, port }) => packed(host, port))]
        : []),
      Uint8Array.from(length),
      value ?? new Uint8Array(),
    ]);
  }
}
