import { toHex } from '../../src/foundation/bytes.ts';
import { type CborValue, encodeCbor } from '../../src/foundation/cbor.ts';
import { type Aid, aidToBytes } from '../../src/foundation/identity/aid.ts';
import { type Delegation, encodeDelegation, issueDelegation } from '../../src/foundation/identity/delegation.ts';
import type { KeyPair } from '../../src/foundation/identity/keys.ts';
import { agentKey, mailboxKey, serviceKey } from '../../src/foundation/records/keys.ts';
import {
  EMPTY_PROFILE,
  encodeEncryptionKeysPayload,
  encodeEndpointsPayload,
  encodeProfilePayload,
  encodeServicePayload,
} from '../../src/foundation/records/payloads.ts';
import { recordSigningInput, type SignedRecord, signRecord } from '../../src/foundation/records/record.ts';
import { RECORD, type RecordType } from '../../src/foundation/records/types.ts';
import { NOW, phraseBytes, phrasePair, turned } from './common.ts';
import { ETHEREUM, MASTER, NATIVE, OPERATIONAL, PARALISM } from './delegation.ts';

const HOUR_S = 3600;
const SERVICE = 'lang.translate';
const NODE = phrasePair('node');
const ONCE = phrasePair('one-time identity of a note');

const ENDPOINTS = {
  endpoints: ['quic://192.0.2.1:4122', 'quic://[2001:db8::1]:4122', 'quic://node.example:4122'],
  natType: 1,
  nodeKey: NODE.publicKey,
  helpers: [{ nodeKey: phrasePair('helper').publicKey, address: '198.51.100.7:4122' }],
  customTypes: [RECORD.profile, 0x0f],
};
const SERVICE_PAYLOAD = {
  service: SERVICE,
  name: 'Übersetzer',
  protocols: ['a2a', 'mcp'],
  tags: ['de', 'en'],
  brief: 'Translates between German and English.',
  meta: '{"url":"https://translate.example/"}',
};
const PROFILE = {
  name: 'Ada',
  brief: 'Counts and translates.',
  protocols: ['a2a'],
  skills: ['translate', 'count'],
  modalities: ['text'],
  cardHash: 'sha256:00',
  meta: '{"since":1843}',
};
const KEYS = [
  { publicKey: phraseBytes('x25519 b'), createdAt: NOW },
  { publicKey: phraseBytes('x25519 a'), createdAt: NOW - 30 * 24 * HOUR_S },
];

function sign(type: RecordType, payload: Uint8Array, delegation: Delegation, key: KeyPair, seq = 1, ttl = HOUR_S) {
  return signRecord({ aid: delegation.agent, type, seq, timestamp: NOW, ttl, payload, delegation }, key);
}

/** The payload of a note as storing nodes see it: the mailbox, and bytes that only the recipient understands. */
function notePayload(recipient: Aid): Uint8Array {
  return Buffer.concat([mailboxKey(recipient), phraseBytes('sealed')]);
}

const ENDPOINTS_RECORD = sign(RECORD.endpoints, encodeEndpointsPayload(ENDPOINTS), NATIVE, OPERATIONAL);
const SERVICE_RECORD = sign(RECORD.service, encodeServicePayload(SERVICE_PAYLOAD), ETHEREUM, OPERATIONAL, 2 ** 32);

function described(name: string, record: SignedRecord, key: Uint8Array) {
  return {
    name,
    aid: record.aid,
    type: record.type,
    seq: record.seq,
    timestamp: record.timestamp,
    ttl: record.ttl,
    payload_hex: toHex(record.payload),
    delegation_hex: toHex(encodeDelegation(record.delegation)),
    signing_input_hex: toHex(recordSigningInput(record)),
    signature_hex: toHex(record.signature),
    record_hex: toHex(record.encoded),
    stored_under_hex: toHex(key),
  };
}

function valid() {
  const { agent } = NATIVE;
  const self = issueDelegation(ONCE, ONCE.publicKey, 0);
  const profile = encodeProfilePayload(PROFILE);
  const keys = encodeEncryptionKeysPayload(KEYS);
  const note = sign(RECORD.note, notePayload(agent), self, ONCE, 1, 7 * 24 * HOUR_S);
  return [
    described('endpoints', ENDPOINTS_RECORD, agentKey(agent)),
    described('profile', sign(RECORD.profile, profile, NATIVE, OPERATIONAL, 7), agentKey(agent)),
    described('custom', sign(0x0f, Uint8Array.of(1, 2, 3), PARALISM, OPERATIONAL, 8), agentKey(PARALISM.agent)),
    described('service', SERVICE_RECORD, serviceKey(SERVICE)),
    described('keys', sign(RECORD.encryptionKeys, keys, NATIVE, OPERATIONAL, 9, 30 * 24 * HOUR_S), agentKey(agent)),
    described('note', note, mailboxKey(agent)),
  ];
}

type Members = { readonly [key: string]: CborValue | undefined };

/** A record with some members changed, signed by a key as it is then, as a stranger would send it. */
function forged(changes: Members, key: KeyPair = OPERATIONAL): string {
  const { aid, type, seq, timestamp, ttl, payload, delegation } = ENDPOINTS_RECORD;
  const members = { v: 1, a: aidToBytes(aid), y: type, s: seq, t: timestamp, l: ttl, p: payload };
  const body = { ...members, d: encodeDelegation(delegation), ...changes };
  const signature = key.sign(Buffer.concat([Buffer.from('svcd/record/v1\0'), encodeCbor(body)]));
  return toHex(encodeCbor({ ...body, g: signature }));
}

function invalid() {
  const record = ENDPOINTS_RECORD.encoded;
  const expired = issueDelegation(MASTER, OPERATIONAL.publicKey, NOW - 10 * HOUR_S, NOW - HOUR_S);
  const stranger = phrasePair('stranger');
  const strangers = issueDelegation(stranger, OPERATIONAL.publicKey, NOW);
  const at = (why: string, record_hex: string, now = NOW) => ({ why, now, record_hex });
  return [
    at('no CBOR', 'ff'),
    at('something behind the map', `${toHex(record)}00`),
    at('a header that is not the shortest', toHex(record).replace(/^a9/, 'b809')),
    at('version 2', forged({ v: 2 })),
    at('a member too many', forged({ x: 1 })),
    at('a member too few', forged({ s: undefined })),
    at('an unknown type', forged({ y: 0x12 })),
    at('type 0', forged({ y: 0 })),
    at('a type beyond a byte', forged({ y: 0x101 })),
    at('a negative seq', forged({ s: -1 })),
    at('a seq that is a text', forged({ s: '1' })),
    at('a life of 0', forged({ l: 0 })),
    at('a life of more than 30 days', forged({ l: 30 * 24 * HOUR_S + 1 })),
    at('a note with a life of more than 7 days', forged({ y: RECORD.note, l: 7 * 24 * HOUR_S + 1 })),
    at('a custom payload of more than 4 KiB', forged({ y: 0x03, p: new Uint8Array(4097) })),
    at('an endpoint record of more than 1,000 bytes', forged({ p: new Uint8Array(800) })),
    at('61 seconds from the future', toHex(record), NOW - 61),
    at('a second after its end', toHex(record), NOW + HOUR_S + 1),
    at("another agent's delegation", forged({ d: encodeDelegation(strangers) })),
    at("another agent's name", forged({ a: aidToBytes(strangers.agent) })),
    at('an expired delegation', forged({ d: encodeDelegation(expired) })),
    at('a delegation that does not verify', forged({ d: turned(encodeDelegation(NATIVE), -10) })),
    at("the master's signature instead of the operational key's", forged({}, MASTER)),
    at("a stranger's signature", forged({}, stranger)),
    at('a turned bit in the signature', toHex(turned(record, indexOf(record, ENDPOINTS_RECORD.signature)))),
    at('a turned bit in the payload', toHex(turned(record, indexOf(record, ENDPOINTS_RECORD.payload) + 40))),
  ];
}

function indexOf(bytes: Uint8Array, part: Uint8Array): number {
  return Buffer.from(bytes).indexOf(part);
}

/** Each is newer than its predecessor: by delegation, then seq, then timestamp. */
function freshness() {
  const newer = issueDelegation(MASTER, phrasePair('operational 2').publicKey, NOW + 1);
  const payload = encodeEndpointsPayload(ENDPOINTS);
  const at = (seq: number, timestamp: number, delegation: Delegation, key: KeyPair) =>
    signRecord({ aid: NATIVE.agent, type: 1, seq, timestamp, ttl: HOUR_S, payload, delegation }, key);
  const records = [
    at(1, NOW, NATIVE, OPERATIONAL),
    at(1, NOW + 5, NATIVE, OPERATIONAL),
    at(2, NOW, NATIVE, OPERATIONAL),
    at(Number.MAX_SAFE_INTEGER, NOW, NATIVE, OPERATIONAL),
    at(1, NOW, newer, phrasePair('operational 2')),
  ];
  return records.map((record) => toHex(record.encoded));
}

function payloads() {
  const { endpoints, natType, nodeKey, helpers, customTypes } = ENDPOINTS;
  const { cardHash, ...profile } = PROFILE;
  return {
    endpoints: {
      payload_hex: toHex(encodeEndpointsPayload(ENDPOINTS)),
      endpoints,
      nat_type: natType,
      node_key_hex: toHex(nodeKey),
      helpers: helpers.map((helper) => ({ node_key_hex: toHex(helper.nodeKey), address: helper.address })),
      custom_types: customTypes,
    },
    service: { payload_hex: toHex(encodeServicePayload(SERVICE_PAYLOAD)), ...SERVICE_PAYLOAD },
    profile: { payload_hex: toHex(encodeProfilePayload(PROFILE)), ...profile, card_hash: cardHash },
    empty_profile: { payload_hex: toHex(encodeProfilePayload(EMPTY_PROFILE)) },
    encryption_keys: {
      payload_hex: toHex(encodeEncryptionKeysPayload(KEYS)),
      keys: KEYS.map((key) => ({ public_key_hex: toHex(key.publicKey), created_at: key.createdAt })),
    },
  };
}

function keys() {
  const aids = [NATIVE.agent, ETHEREUM.agent, PARALISM.agent];
  return {
    agents: aids.map((aid) => ({ aid, agent_key_hex: toHex(agentKey(aid)), mailbox_key_hex: toHex(mailboxKey(aid)) })),
    services: [SERVICE, 'a'].map((service) => ({ service, service_key_hex: toHex(serviceKey(service)) })),
  };
}

export function recordVectors(): unknown {
  return {
    now: NOW,
    operational_seed_hex: toHex(OPERATIONAL.seed),
    valid: valid(),
    invalid: invalid(),
    misplaced: [
      { record_hex: toHex(ENDPOINTS_RECORD.encoded), key_hex: toHex(mailboxKey(NATIVE.agent)) },
      { record_hex: toHex(ENDPOINTS_RECORD.encoded), key_hex: toHex(agentKey(ETHEREUM.agent)) },
      { record_hex: toHex(SERVICE_RECORD.encoded), key_hex: toHex(serviceKey('lang.translat')) },
      { record_hex: toHex(SERVICE_RECORD.encoded), key_hex: toHex(agentKey(ETHEREUM.agent)) },
    ],
    oldest_to_newest: freshness(),
    payloads: payloads(),
    keys: keys(),
  };
}
