/** The kinds of entries that have a meaning for the group itself, and their required fields. */
import { HASH_BYTES, JOIN_SECRET_BYTES, MAX_TITLE_CHARS } from '../../foundation/domain/groups.ts';
import { isSha256 } from '../../foundation/domain/objects.ts';
import { PUBLIC_KEY_BYTES } from '../../foundation/identity/ed25519.ts';
import type { KeyPair } from '../../foundation/identity/keys.ts';
import { type EntryContent, groupIdOf, joinKey } from './entry.ts';

const CONTROL_KINDS = ['create', 'invite', 'join', 'leave', 'remove', 'role', 'key', 'rekey'] as const;

/** Kinds that affect membership. */
export type ControlKind = (typeof CONTROL_KINDS)[number];

export function isControl(kind: string): kind is ControlKind {
  return CONTROL_KINDS.some((control) => control === kind);
}

/** Whether entries of this kind count as unread. */
export function isContent(kind: string): boolean {
  return !isControl(kind) && kind !== 'retract';
}

/** Whether entries of this kind set something, so that a later one may repeat an earlier one on purpose. */
export function setsState(kind: string): boolean {
  return !isContent(kind) || kind === 'title';
}

/** The body as text, or null if it is absent or not UTF-8. */
export function bodyText(content: Pick<EntryContent, 'body'>): string | null {
  if (content.body === undefined) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content.body);
  } catch {
    return null;
  }
}

/** The nonce and the public join key of a `create` entry. */
export function createFields(content: Pick<EntryContent, 'proof'>): { nonce: Uint8Array; joinKey: Uint8Array } {
  const proof = content.proof ?? new Uint8Array(0);
  return { nonce: proof.subarray(0, HASH_BYTES), joinKey: proof.subarray(HASH_BYTES, HASH_BYTES + PUBLIC_KEY_BYTES) };
}

/** The key pair of the join secret in a `rekey` entry. */
export function rekeyOf(content: Pick<EntryContent, 'body'>): KeyPair {
  return joinKey(content.body ?? new Uint8Array(0));
}

function titleProblem(content: EntryContent): string | null {
  const title = bodyText(content);
  return title === null || title.length > MAX_TITLE_CHARS ? 'the title is malformed' : null;
}

function createProblem(content: EntryContent): string | null {
  if (content.parents.length > 0 || content.depth !== 0) return 'the first entry has parents';
  if (content.proof === undefined) return 'the first entry has no nonce';
  if (groupIdOf(content.author, createFields(content).nonce) !== content.groupId)
    return 'the group is not of this creator';
  return titleProblem(content);
}

function targetProblem(content: EntryContent): string | null {
  return content.to?.length === 1 ? null : 'exactly one agent must be named';
}

function rekeyProblem({ body }: EntryContent): string | null {
  return body?.length === JOIN_SECRET_BYTES ? null : 'the join secret is malformed';
}

function roleProblem(content: EntryContent): string | null {
  const isRole = ['admin', 'member'].includes(bodyText(content) ?? '');
  return isRole ? targetProblem(content) : 'a role is "admin" or "member"';
}

function retractProblem(content: EntryContent): string | null {
  return isSha256(content.ref ?? '') ? null : 'the reference is not an entry ID';
}

/** A map instead of an object, because strangers choose the kind, for example `constructor` or `__proto__`. */
const SHAPES: ReadonlyMap<string, (content: EntryContent) => string | null> = new Map([
  ['create', createProblem],
  ['title', titleProblem],
  ['invite', targetProblem],
  ['remove', targetProblem],
  ['rekey', rekeyProblem],
  ['role', roleProblem],
  ['retract', retractProblem],
]);

/** Why the fields of an entry are invalid, independent of its author and position. Null if they are valid. */
export function shapeProblem(content: EntryContent): string | null {
  if (content.kind !== 'create' && content.parents.length === 0) return 'it has no parents';
  if (content.proof !== undefined && content.kind !== 'create' && content.kind !== 'join')
    return 'it has a proof that its kind does not use';
  return SHAPES.get(content.kind)?.(content) ?? null;
}
