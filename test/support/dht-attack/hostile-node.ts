/** Responses of hostile nodes: they answer pings, name only hostile nodes as closest, and send false records. */
import { randomBytes } from 'node:crypto';
import { equalBytes, toHex } from '../../../src/foundation/bytes.ts';
import { recordDigest } from '../../../src/foundation/records/digest.ts';
import { RECORD_DIGEST_BYTES } from '../../../src/foundation/records/types.ts';
import {
  COMMAND,
  encodeFindReply,
  encodeRemoveReply,
  encodeStoreReply,
} from '../../../src/network/records/messages.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import { NETWORK_TAG_BYTES } from '../../../src/network/transport/udp-socket.ts';
import { Random } from '../random.ts';
import { closestPositions, distance, type Position, phantomsNear } from './positions.ts';

/** Commands, first bytes, flags and offsets of datagrams. */
const FIND_NODE = 2;
const REQUEST_BYTE = 0x03;
const ANSWER_BYTE = 0x13;
const FLAG = { id: 1, token: 2, internal: 4, target: 8, value: 16, closer: 4 } as const;
const ID_BYTES = 32;
/** Nodes in a response. */
const NAMED = 17;

/**
 * Responses to requests for records: none, made-up records, the first record instead of the newest, more records than a
 * reader can fetch, or no response.
 */
export type Lie = 'nothing' | 'other' | 'stale' | 'many' | 'silent';

export interface HostileRequest {
  readonly tid: Uint8Array;
  readonly internal: boolean;
  readonly command: number;
  readonly target: Uint8Array | null;
  readonly value: Uint8Array | null;
}

function packAddress(host: string, port: number): Uint8Array {
  return Uint8Array.from([...host.split('.').map(Number), port & 0xff, port >> 8]);
}

/** Decodes a request; null for a response, and for other datagrams. */
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

/** A ping from a node. */
export function encodePing(
  from: Position,
  to: { readonly host: string; readonly port: number },
  tag: Uint8Array,
): Buffer {
  const head = Buffer.from([REQUEST_BYTE, FLAG.id | FLAG.internal, 1, 1]);
  return Buffer.concat([tag, head, packAddress(to.host, to.port), from.id, Buffer.from([0])]);
}

/**
 * Nodes that they name as closer: hostile nodes, or unused addresses, which cost nothing: phantoms in any network, or
 * in the networks of the nearest honest nodes.
 */
export type ClosestNames = 'own' | 'phantoms' | 'near-networks';

/** Behavior of all hostile nodes; it can change. */
export interface Behavior {
  readonly lie: Lie;
  readonly names: ClosestNames;
  /** Delay of responses about records, in milliseconds. */
  readonly delayMs: number;
}

export interface HostileSetup {
  readonly keys: readonly Uint8Array[];
  /** The /16 networks of the honest nodes nearest to each key. */
  readonly nearNetworks: readonly (readonly string[])[];
  /** Report a wrong external address to joining nodes. */
  readonly reportsWrongAddress: boolean;
  readonly positions: readonly Position[];
  readonly network: string;
  /** The attacker's records, by key in hex. */
  readonly own: ReadonlyMap<string, Uint8Array>;
}

export class HostileNodes {
  readonly tag: Uint8Array;
  behavior: Behavior = { lie: 'nothing', names: 'own', delayMs: 0 };
  readonly #setup: HostileSetup;
  readonly #attacked: ReadonlySet<string>;
  readonly #sorted: readonly Position[];
  readonly #named = new Map<string, readonly Position[]>();
  /** The first record that any hostile node received, by key. */
  readonly #first = new Map<string, Uint8Array>();
  readonly #phantoms = new Map<string, readonly Position[]>();
  readonly #random = new Random(7);
  readonly #nodeKeys = new Map<Position, Uint8Array>();
  /** Number of store requests, by key. */
  readonly storeRequests = new Map<string, number>();

  constructor(setup: HostileSetup) {
    this.#setup = setup;
    this.tag = networkTag(setup.network);
    this.#attacked = new Set(setup.keys.map(toHex));
    const zero = new Uint8Array(ID_BYTES);
    this.#sorted = setup.positions.toSorted((a, b) => distance(zero, a.id) - distance(zero, b.id));
  }

  /** The response of a hostile node; null for no response. */
  answer(as: Position, request: HostileRequest, to: { readonly host: string; readonly port: number }): Buffer | null {
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
      this.storeRequests.set(key, (this.storeRequests.get(key) ?? 0) + 1);
      if (request.value !== null && !this.#first.has(key)) this.#first.set(key, Uint8Array.from(request.value));
      return this.#datagram(as, request, to, encodeStoreReply({ code: 'kept' }), []);
    }
    return this.#datagram(as, request, to, encodeRemoveReply(0), []);
  }

  /** The hostile nodes near a key. */
  #near(target: Uint8Array): readonly Position[] {
    const name = toHex(target);
    const phantoms = this.#phantomsNear(target);
    if (phantoms !== null) return Array.from({ length: NAMED }, () => this.#random.pick(phantoms));
    const known = this.#named.get(name);
    if (known !== undefined) return known;
    const near = closestPositions(target, this.#idNeighbors(target), NAMED);
    this.#named.set(name, near);
    return near;
  }

  #phantomsNear(target: Uint8Array): readonly Position[] | null {
    const { names } = this.behavior;
    const { keys, nearNetworks } = this.#setup;
    const nth = keys.findIndex((key) => equalBytes(key, target));
    if (names === 'own' || nth < 0) return null;
    const name = `${names}.${nth}`;
    let phantoms = this.#phantoms.get(name);
    if (phantoms === undefined) {
      phantoms = phantomsNear(target, names === 'near-networks' ? nearNetworks[nth] : []);
      this.#phantoms.set(name, phantoms);
    }
    return phantoms;
  }

  /** Candidates for the closest nodes: neighbors of the target in the order of ids. */
  #idNeighbors(target: Uint8Array): readonly Position[] {
    const zero = new Uint8Array(ID_BYTES);
    const at = distance(zero, target);
    const next = this.#sorted.findIndex(({ id }) => distance(zero, id) >= at);
    const middle = next < 0 ? this.#sorted.length : next;
    return this.#sorted.slice(Math.max(0, middle - 4 * NAMED), middle + 4 * NAMED);
  }

  #find(as: Position, target: Uint8Array): Uint8Array | null {
    const { own } = this.#setup;
    const { lie } = this.behavior;
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

  #nodeKey(position: Position): Uint8Array {
    let key = this.#nodeKeys.get(position);
    if (key === undefined) this.#nodeKeys.set(position, (key = randomBytes(32)));
    return key;
  }

  #datagram(
    as: Position,
    { tid }: HostileRequest,
    to: { readonly host: string; readonly port: number },
    value: Uint8Array | null,
    closer: readonly Position[],
  ): Buffer {
    const flags = FLAG.id | FLAG.token | (closer.length > 0 ? FLAG.closer : 0) | (value === null ? 0 : FLAG.value);
    const length =
      value === null ? [] : value.length < 0xfd ? [value.length] : [0xfd, value.length & 0xff, value.length >> 8];
    return Buffer.concat([
      this.tag,
      Uint8Array.of(ANSWER_BYTE, flags),
      tid,
      this.#setup.reportsWrongAddress ? packAddress('45.45.45.45', to.port) : packAddress(to.host, to.port),
      as.id,
      new Uint8Array(ID_BYTES),
      ...(closer.length > 0
        ? [Uint8Array.of(closer.length), ...closer.map(({ host, port }) => packAddress(host, port))]
        : []),
      Uint8Array.from(length),
      value ?? new Uint8Array(),
    ]);
  }
}
