/** The publications of a moved agent: its cards move too, and invalid ones are rejected. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { profilePublication, servicePublications } from '../../../src/capabilities/directory/cards.ts';
import { exportRecords, importRecords } from '../../../src/capabilities/directory/moving.ts';
import { ENDPOINTS } from '../../../src/capabilities/directory/publishing.ts';
import { toBase64 } from '../../../src/foundation/base64.ts';
import { MAX_SERVICES } from '../../../src/foundation/domain/directory.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { RecordsPart } from '../../../src/foundation/moving/agent-document.ts';
import { MAX_CUSTOM_PAYLOAD_BYTES, RECORD } from '../../../src/foundation/records/types.ts';
import { AgentStore } from '../../../src/foundation/store/agents.ts';
import { type Publication, PublicationStore } from '../../../src/foundation/store/publications.ts';
import { MIGRATIONS } from '../../../src/foundation/store/schema.ts';
import { Store } from '../../../src/foundation/store/store.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid: AID, delegation: DELEGATION } = newIdentity();
type Kept = RecordsPart['kept'][number];

function publications(): PublicationStore {
  const store = Store.open(':memory:', MIGRATIONS);
  new AgentStore(store).put({ keyName: 'agent-1', delegation: DELEGATION, serviceTcp: '', registeredAt: 1 });
  return new PublicationStore(store);
}

function services(...names: string[]): Publication[] {
  const offer = { services: names, name: 'A', protocols: ['http'], tags: [], brief: '', meta: null, ttl: 3600 };
  return servicePublications(offer, DELEGATION);
}

function keptOf({ type, name, payload, ttl }: Publication): Kept {
  return { type, name, payload_base64: toBase64(payload), ttl };
}

const CARD = profilePublication({ name: 'Ada' });
const CUSTOM: Publication = { type: RECORD.customLast, name: '', payload: new Uint8Array([1, 2]), ttl: 60 };

/** The path of the invalid value, or "none". */
function refusal(...kept: readonly Kept[]): unknown {
  try {
    importRecords(publications(), AID, { seq: 1, kept: [...kept] }, DELEGATION, 0);
  } catch (error) {
    assert.ok(error instanceof SvcError && error.code === 'bad_file');
    return error.details?.['path'];
  }
  return 'none';
}

test('published records move with the agent, and publishing continues above their number', () => {
  const [there, here] = [publications(), publications()];
  assert.deepEqual(exportRecords(there, AID), { seq: 0, kept: [] });
  there.claim(AID, 0);
  for (const one of [ENDPOINTS, CARD, CUSTOM, ...services('a', 'b')]) there.put(AID, one);
  there.put(AID, { type: RECORD.encryptionKeys, name: '', payload: new Uint8Array([3]), ttl: 60 });
  there.reserve(AID, 41, 1);
  const part = exportRecords(there, AID);
  assert.equal(part.seq, 42);
  assert.deepEqual(
    new Set(part.kept.map(({ type }) => type)),
    new Set([ENDPOINTS.type, CARD.type, CUSTOM.type, RECORD.service]),
  );
  const keep = importRecords(here, AID, part, DELEGATION, 5000);
  assert.deepEqual(here.publications(AID), []);
  keep();
  assert.deepEqual(exportRecords(here, AID), part);
  const publisher = here.publisher(AID);
  assert.deepEqual([publisher?.claim, publisher?.dueAt], [true, 5000]);
});

test('endpoints are rebuilt, independent of the document', () => {
  const here = publications();
  const kept = [{ ...keptOf(ENDPOINTS), payload_base64: toBase64(new Uint8Array([9])), ttl: 7 }];
  importRecords(here, AID, { seq: 0, kept }, DELEGATION, 0)();
  assert.deepEqual(here.publications(AID).map(keptOf), [keptOf(ENDPOINTS)]);
});

test('records that an agent could not have published are rejected with their path', () => {
  const [service] = services('a');
  assert.ok(service);
  const good = keptOf(service);
  assert.equal(refusal(keptOf(ENDPOINTS), keptOf(CARD), keptOf(CUSTOM), good), 'none');
  assert.equal(refusal({ ...good, payload_base64: '!' }), '/records/kept/0/payload_base64');
  assert.equal(refusal({ ...good, name: 'b' }), '/records/kept/0/payload_base64');
  assert.equal(refusal({ ...good, payload_base64: 'AAAA' }), '/records/kept/0/payload_base64');
  assert.equal(refusal({ ...good, name: 'No Name' }), '/records/kept/0');
  assert.equal(refusal({ ...keptOf(ENDPOINTS), name: 'a' }), '/records/kept/0');
  assert.equal(refusal({ ...keptOf(CUSTOM), name: 'a' }), '/records/kept/0');
  assert.equal(refusal({ ...keptOf(CARD), payload_base64: 'AAAA' }), '/records/kept/0/payload_base64');
  assert.equal(refusal({ ...keptOf(CUSTOM), type: RECORD.encryptionKeys }), '/records/kept/0');
  assert.equal(refusal(good, good), '/records/kept');
  const long = toBase64(new Uint8Array(MAX_CUSTOM_PAYLOAD_BYTES + 1));
  assert.equal(refusal({ ...keptOf(CUSTOM), payload_base64: long }), '/records/kept/0/payload_base64');
});

test('an agent can bring up to the maximum number of services', () => {
  const names = Array.from({ length: MAX_SERVICES + 1 }, (_, i) => `s${i}`);
  assert.equal(refusal(keptOf(CUSTOM), ...services(...names.slice(1)).map(keptOf)), 'none');
  assert.equal(refusal(...services(...names).map(keptOf)), '/records/kept');
});
