/** The profile: custom record 0x02, the public description of an agent. All members are optional. */
import { encodeCbor } from '../cbor.ts';
import {
  checkCount,
  checked,
  checkLabels,
  checkMeta,
  checkText,
  decodeMap,
  emptyToUndefined,
  readText,
  readTexts,
} from './fields.ts';
import {
  MAX_BRIEF_BYTES,
  MAX_CARD_HASH_BYTES,
  MAX_CUSTOM_PAYLOAD_BYTES,
  MAX_NAME_BYTES,
  MAX_SKILL_BYTES,
  MAX_SKILLS,
} from './types.ts';

export interface ProfilePayload {
  readonly name: string;
  readonly brief: string;
  readonly protocols: readonly string[];
  /** At most 3. */
  readonly skills: readonly string[];
  readonly modalities: readonly string[];
  /** Hash of a more detailed card elsewhere, in the form of its format. */
  readonly cardHash: string;
  /** JSON text of the free-form `meta` object; empty if there is none. */
  readonly meta: string;
}

/** An empty profile. */
export const EMPTY_PROFILE: ProfilePayload = {
  name: '',
  brief: '',
  protocols: [],
  skills: [],
  modalities: [],
  cardHash: '',
  meta: '',
};

function checkProfile(p: ProfilePayload): void {
  checkText('name', p.name, MAX_NAME_BYTES);
  checkText('brief', p.brief, MAX_BRIEF_BYTES);
  checkLabels('protocols', p.protocols);
  checkCount('skills', p.skills, MAX_SKILLS);
  for (const skill of p.skills) checkText('skills', skill, MAX_SKILL_BYTES);
  checkLabels('modalities', p.modalities);
  checkText('card_hash', p.cardHash, MAX_CARD_HASH_BYTES);
  checkMeta(p.meta);
}

/**
 * Encodes a profile in deterministic CBOR. The 4 KiB limit is checked when the record is signed.
 * @throws SvcError `too_large`, `invalid_request`
 */
export function encodeProfilePayload(p: ProfilePayload): Uint8Array {
  checkProfile(p);
  return encodeCbor({
    n: emptyToUndefined(p.name),
    b: emptyToUndefined(p.brief),
    p: emptyToUndefined(p.protocols),
    s: emptyToUndefined(p.skills),
    o: emptyToUndefined(p.modalities),
    h: emptyToUndefined(p.cardHash),
    m: emptyToUndefined(p.meta),
  });
}

/** Null if the payload is not a profile: applications can put anything into custom records. */
export function decodeProfilePayload(bytes: Uint8Array): ProfilePayload | null {
  const map = decodeMap(bytes, MAX_CUSTOM_PAYLOAD_BYTES);
  if (map === null) return null;
  const [name, brief] = [readText(map['n']), readText(map['b'])];
  const [cardHash, meta] = [readText(map['h']), readText(map['m'])];
  const [protocols, skills, modalities] = [readTexts(map['p']), readTexts(map['s']), readTexts(map['o'])];
  if (name === null || brief === null || cardHash === null || meta === null) return null;
  if (protocols === null || skills === null || modalities === null) return null;
  return checked({ name, brief, protocols, skills, modalities, cardHash, meta }, checkProfile);
}
