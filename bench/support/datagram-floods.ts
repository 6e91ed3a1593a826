/** Floods of the record network from one socket and address, with datagrams that anyone can send. */
import { randomBytes, randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { serviceKey } from '../../src/foundation/records/keys.ts';
import {
  RECORD,
  RECORD_DIGEST_BYTES,
  REMOVAL_TOKEN_BYTES,
  type RecordType,
} from '../../src/foundation/records/types.ts';
import {
  COMMAND,
  encodeFindRequest,
  encodeProbeRequest,
  encodeRemoveRequest,
  MAX_PARTS,
  MAX_REMOVALS,
} from '../../src/network/records/messages.ts';
import { NETWORK_TAG_BYTES } from '../../src/network/transport/udp-socket.ts';
import { rawRequest } from '../../test/support/hostile-dht.ts';
import { endpointRecord, type Published, serviceRecord } from '../../test/support/records.ts';
import { type Flood, paced, type Target } from './flood.ts';

const PER_SECOND = 5000;
/** Number of different records that one flood stores repeatedly. */
const RECORDS = 2000;
/** Commands of the routing itself. */
const PING = 0;
const FIND_NODE = 2;
/** Offset of the token in a response: after the tag, a header, and the node's id if present. */
const FLAGS_AT = NETWORK_TAG_BYTES + 1;
const HEADER_END = NETWORK_TAG_BYTES + 10;
const WORD_BYTES = 32;
/** The name and the length of a node's key in the CBOR of an answer. */
const NODE_KEY_MARK = Buffer.from([0x61, 0x6b, 0x58, 0x20]);

/** The token in a response, or null. */
export function tokenIn(answer: Uint8Array): Uint8Array | null {
  const flags = answer[FLAGS_AT] ?? 0;
  if ((flags & 2) === 0) return null;
  const at = HEADER_END + (flags & 1 ? WORD_BYTES : 0);
  return answer.slice(at, at + WORD_BYTES);
}

/** Sends lookups for a key until a response carries a token. */
async function requestToken(socket: Socket, { dht }: Target): Promise<Uint8Array> {
  const value = encodeFindRequest({ types: [], wantsRecords: false });
  for (;;) {
    socket.send(
      rawRequest(dht, { command: COMMAND.find, target: randomBytes(WORD_BYTES), value }, ''),
      dht.port,
      dht.host,
    );
    const [answer] = (await once(socket, 'message')) as [Buffer];
    const token = tokenIn(answer);
    if (token !== null) return token;
  }
}

interface Moment {
  readonly target: Target;
  readonly key: Uint8Array;
  readonly index: number;
  readonly token: Uint8Array;
}

/** Creates one datagram. */
type Datagram = (moment: Moment) => Uint8Array;

const TYPES = Object.values(RECORD);

/** The same few types, in different encodings. */
function someTypes(): RecordType[] {
  return Array.from({ length: randomInt(12) }, () => TYPES[randomInt(TYPES.length)] ?? RECORD.service);
}

function find(target: Target, key: Uint8Array, types: readonly RecordType[], index = -1): Uint8Array {
  const part = index < 0 ? {} : { part: { index: index % MAX_PARTS, of: MAX_PARTS } };
  const value = encodeFindRequest({ types, wantsRecords: true, ...part });
  return rawRequest(target.dht, { command: COMMAND.find, target: key, value }, '');
}

function store({ target, token }: Moment, { key, record }: Published, value = record.encoded): Uint8Array {
  return rawRequest(target.dht, { command: COMMAND.store, target: key, value, token }, '');
}

/** The record with its signature broken. */
function forged(encoded: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(encoded);
  copy[copy.length - 5] = (copy[copy.length - 5] ?? 0) ^ 1;
  return copy;
}

function makeDatagrams(records: readonly Published[]): Readonly<Record<string, Datagram>> {
  const [any] = records;
  if (any === undefined) throw new RangeError('no records');
  const at = (index: number): Published => records[index % records.length] ?? any;
  return {
    'pings and lookups': ({ target: { dht }, index }) =>
      rawRequest(dht, { command: index % 2 ? PING : FIND_NODE, internal: true, target: randomBytes(WORD_BYTES) }, ''),
    'FIND, 1,000 records, parts': ({ target, key, index }) => find(target, key, [], index),
    'FIND, 1,000 records, types in varying encodings': ({ target, key }) => find(target, key, someTypes()),
    'FIND, keys of nothing': ({ target }) => find(target, randomBytes(WORD_BYTES), []),
    'STORE, valid': (moment) => store(moment, at(moment.index)),
    'STORE, forged': (moment) => store(moment, at(moment.index), forged(at(moment.index).record.encoded)),
    'STORE, noise': (moment) => store(moment, at(moment.index), randomBytes(500)),
    'REMOVE of 32 notes': ({ target: { dht }, key, token }) => {
      const removals = Array.from({ length: MAX_REMOVALS }, () => ({
        digest: randomBytes(RECORD_DIGEST_BYTES),
        token: randomBytes(REMOVAL_TOKEN_BYTES),
      }));
      return rawRequest(dht, { command: COMMAND.remove, target: key, value: encodeRemoveRequest(removals), token }, '');
    },
    probes: ({ target: { dht }, index }) =>
      rawRequest(
        dht,
        { command: COMMAND.probe, value: encodeProbeRequest({ port: 9, otherSocket: index % 2 > 0 }) },
        '',
      ),
    'noise to the record network': ({ target: { dht }, index }) =>
      index % 2
        ? randomBytes(randomInt(1, 1200))
        : Buffer.concat([rawRequest(dht, { command: randomInt(256) }, ''), randomBytes(randomInt(900))]),
  };
}

async function open(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

/** Sends datagrams of alternating kinds from several sockets. */
function flood(kind: string | null, sockets = 1): Flood {
  return async (target) => {
    const key = serviceKey(target.service);
    const records = Array.from({ length: RECORDS }, (_, i) =>
      i % 2 ? endpointRecord() : serviceRecord(target.service),
    );
    const datagrams = makeDatagrams(records);
    const kinds = kind === null ? Object.values(datagrams) : [datagrams[kind] ?? (() => Buffer.alloc(0))];
    const sources = await Promise.all(Array.from({ length: sockets }, open));
    const tokens = await Promise.all(sources.map((socket) => requestToken(socket, target)));
    const refresh = encodeFindRequest({ types: [], wantsRecords: false });
    sources.forEach((socket, i) => {
      socket.on('message', (answer: Buffer) => {
        tokens[i] = tokenIn(answer) ?? tokens[i] ?? answer;
      });
    });
    return (until, sent) =>
      paced(PER_SECOND, until, (index) => {
        const [socket, token] = [sources[index % sockets], tokens[index % sockets]];
        const make = kinds[Math.floor(index / sockets) % kinds.length];
        if (socket === undefined || token === undefined || make === undefined) return;
        // Some requests fetch a new token.
        const datagram =
          Math.floor(index / sockets) % 50 === 0
            ? rawRequest(target.dht, { command: COMMAND.find, target: key, value: refresh }, '')
            : make({ target, key, index, token });
        socket.send(datagram, target.dht.port, target.dht.host);
        sent(1);
      });
  };
}

const KINDS = Object.keys(makeDatagrams([endpointRecord()]));

export const datagramFloods: Readonly<Record<string, Flood>> = {
  ...Object.fromEntries(KINDS.map((kind) => [kind, flood(kind)])),
  'all of these, mixed': flood(null),
  'all of these, from 20 sources': flood(null, 20),
};

/** Stores records of many publishers under the service name, as any node could. */
export async function fill(target: Target, publishers: number): Promise<void> {
  const socket = await open();
  const token = await requestToken(socket, target);
  const moment = { target, key: serviceKey(target.service), index: 0, token };
  for (let i = 0; i < publishers; i++) {
    const stored = once(socket, 'message');
    socket.send(store(moment, serviceRecord(target.service)), target.dht.port, target.dht.host);
    await stored;
  }
  socket.close();
}

/** The key of a node, from its responses. */
export async function nodeKeyOf(dht: Target['dht']): Promise<Uint8Array> {
  const socket = await open();
  const value = encodeFindRequest({ types: [], wantsRecords: false });
  const answer = once(socket, 'message');
  socket.send(
    rawRequest(dht, { command: COMMAND.find, target: randomBytes(WORD_BYTES), value }, ''),
    dht.port,
    dht.host,
  );
  const [datagram] = (await answer) as [Buffer];
  socket.close();
  const at = datagram.indexOf(NODE_KEY_MARK);
  return datagram.subarray(at + NODE_KEY_MARK.length, at + NODE_KEY_MARK.length + WORD_BYTES);
}
