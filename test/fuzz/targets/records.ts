/** Signed records and their payloads. */
import { equalBytes } from '../../../src/foundation/bytes.ts';
import { agentKey, belongsUnderKey } from '../../../src/foundation/records/keys.ts';
import { decodeNotePayload, encodeNotePayload } from '../../../src/foundation/records/notes.ts';
import {
  decodeEncryptionKeysPayload,
  decodeEndpointsPayload,
  decodeProfilePayload,
  decodeServicePayload,
  encodeEncryptionKeysPayload,
  encodeEndpointsPayload,
  encodeProfilePayload,
  encodeServicePayload,
} from '../../../src/foundation/records/payloads.ts';
import { decodeRecord, type SignedRecord } from '../../../src/foundation/records/record.ts';
import { verifyRecord } from '../../support/records.ts';
import { decoder, refusal, violation } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const NOW = 1_760_000_000;
const REFUSALS = ['bad_record', 'bad_delegation'] as const;

/** Signed records: only the signer can produce another one. */
const SIGNED = [...vectorBytes('record', 'valid.*.record_hex'), ...vectorBytes('record', 'oldest_to_newest.*')];

function judge(record: SignedRecord): string {
  // Nodes check whether they may store a record before they verify it.
  belongsUnderKey(record, agentKey(record.aid));
  try {
    verifyRecord(record, NOW);
  } catch (error) {
    return refusal(error, REFUSALS);
  }
  if (!SIGNED.some((signed) => equalBytes(signed, record.encoded)))
    throw violation('a record was forged', record.encoded);
  return 'verified';
}

const record = decoder({
  name: 'record',
  inputs: 4000,
  seeds: () => SIGNED,
  decode: decodeRecord,
  refuses: REFUSALS,
  encode: ({ encoded }) => encoded,
  canonical: true,
  check: judge,
});

const endpoints = decoder({
  name: 'endpoints-payload',
  inputs: 5000,
  seeds: () => vectorBytes('record', 'payloads.endpoints.payload_hex'),
  decode: decodeEndpointsPayload,
  encode: encodeEndpointsPayload,
});

const service = decoder({
  name: 'service-payload',
  inputs: 5000,
  seeds: () => vectorBytes('record', 'payloads.service.payload_hex'),
  decode: decodeServicePayload,
  encode: encodeServicePayload,
});

const profile = decoder({
  name: 'profile-payload',
  inputs: 5000,
  seeds: () => [
    ...vectorBytes('record', 'payloads.profile.payload_hex'),
    ...vectorBytes('record', 'payloads.empty_profile.payload_hex'),
  ],
  decode: decodeProfilePayload,
  encode: encodeProfilePayload,
});

const encryptionKeys = decoder({
  name: 'encryption-keys-payload',
  inputs: 5000,
  seeds: () => vectorBytes('record', 'payloads.encryption_keys.payload_hex'),
  decode: decodeEncryptionKeysPayload,
  encode: encodeEncryptionKeysPayload,
});

const note = decoder({
  name: 'note-payload',
  inputs: 5000,
  seeds: () => vectorBytes('notes', 'notes.*.payload_hex'),
  decode: decodeNotePayload,
  encode: encodeNotePayload,
  canonical: true,
});

export const recordTargets: readonly FuzzTarget[] = [record, endpoints, service, profile, encryptionKeys, note];
