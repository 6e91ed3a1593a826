/** The publications of an agent, for its move to another node. */
import { toBase64 } from '../../foundation/base64.ts';
import { MAX_SERVICES } from '../../foundation/domain/directory.ts';
import { isServiceName } from '../../foundation/domain/services.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Delegation } from '../../foundation/identity/delegation.ts';
import type { RecordsPart } from '../../foundation/moving/agent-document.ts';
import { badDocument, base64At, checkDistinct } from '../../foundation/moving/document-fields.ts';
import { decodeProfilePayload, decodeServicePayload } from '../../foundation/records/payloads.ts';
import { payloadBudget } from '../../foundation/records/record.ts';
import { isCustomType, MAX_CUSTOM_PAYLOAD_BYTES, RECORD } from '../../foundation/records/types.ts';
import type { Publication, PublicationStore } from '../../foundation/store/publications.ts';
import { ENDPOINTS } from './publishing.ts';

/** The publications of an agent, without encryption keys, which derive from other keys. */
export function exportRecords(publications: PublicationStore, aid: Aid): RecordsPart {
  const rows = publications.publications(aid).filter(({ type }) => type !== RECORD.encryptionKeys);
  return {
    seq: publications.publisher(aid)?.seq ?? 0,
    kept: rows.map(({ type, name, payload, ttl }) => ({ type, name, payload_base64: toBase64(payload), ttl })),
  };
}

/**
 * Checks the publications of an agent from another node.
 * @returns a function that stores them, so that they are published with higher numbers than on the other node
 * @throws SvcError `bad_file`
 */
export function importRecords(
  publications: PublicationStore,
  aid: Aid,
  part: RecordsPart,
  delegation: Delegation,
  now: number,
): () => void {
  const path = '/records/kept';
  const kept = part.kept.map((one, i) => readRecord(`${path}/${i}`, one, delegation));
  checkDistinct(
    path,
    kept.map(({ type, name }) => `${type} ${name}`),
  );
  if (kept.filter(({ type }) => type === RECORD.service).length > MAX_SERVICES)
    throw badDocument(path, `offers more than ${MAX_SERVICES} services`);
  return () => {
    publications.claim(aid, now);
    publications.reserve(aid, part.seq, 0);
    for (const one of kept) publications.put(aid, one);
  };
}

function readRecord(path: string, one: RecordsPart['kept'][number], delegation: Delegation): Publication {
  const { type, name, ttl } = one;
  const payload = base64At(`${path}/payload_base64`, one.payload_base64, MAX_CUSTOM_PAYLOAD_BYTES);
  if (type === RECORD.endpoints && name === '') return ENDPOINTS;
  if (isCustomType(type) && name === '') {
    if (type === RECORD.profile && decodeProfilePayload(payload) === null)
      throw badDocument(`${path}/payload_base64`, 'is not a profile card');
    return { type, name, payload, ttl };
  }
  if (type !== RECORD.service || !isServiceName(name))
    throw badDocument(path, 'is not a record that an agent publishes');
  const fits = payload.length <= payloadBudget(RECORD.service, delegation);
  if (!fits || decodeServicePayload(payload)?.service !== name)
    throw badDocument(`${path}/payload_base64`, 'is not the card of this service');
  return { type, name, payload, ttl };
}
