/** Decides whether an entry is admitted. The decision depends only on the entry and its ancestors. */
import { MAX_MEMBERS } from '../../foundation/domain/groups.ts';
import type { ControlLog, View } from './control.ts';
import { type Entry, provesSecret } from './entry.ts';
import { shapeProblem } from './kinds.ts';
import type { Position } from './position.ts';

function positionProblem(entry: Entry, { parents }: Position): string | null {
  const depth = parents.reduce((deepest, parent) => Math.max(deepest, parent.depth + 1), 0);
  if (entry.depth !== depth) return 'its depth is wrong';
  return parents.some((parent) => parent.at > entry.at) ? 'it is older than a parent' : null;
}

function joinProblem(entry: Entry, control: ControlLog, { view }: Position): string | null {
  if (control.role(view, entry.author) !== null) return 'the author is already a member';
  if (control.isFull(view, MAX_MEMBERS)) return 'the group is full';
  if (entry.proof === undefined) return control.isInvited(view, entry.author) ? null : 'the author is not invited';
  if (control.isBanned(view, entry.author) && !control.isInvited(view, entry.author)) return 'the author was removed';
  const { groupId, author, proof } = entry;
  const proven = control.joinKeys(view).some((key) => provesSecret(key, groupId, author, proof));
  return proven ? null : 'the join secret is not proven';
}

function removeProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const role = control.role(view, entry.author);
  const [target] = entry.to ?? [];
  const other = target === undefined ? null : control.role(view, target);
  if (role === 'member') return 'only admins can remove members';
  if (other === 'creator') return 'the creator cannot be removed';
  return other === 'admin' && role !== 'creator' ? 'only the creator can remove admins' : null;
}

function roleProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const [target] = entry.to ?? [];
  if (control.role(view, entry.author) !== 'creator') return 'only the creator can assign roles';
  const other = target === undefined ? null : control.role(view, target);
  return other === null || other === 'creator' ? 'the agent is not a member' : null;
}

function memberProblem(entry: Entry, control: ControlLog, view: View): string | null {
  const role = control.role(view, entry.author);
  if (role === null) return 'the author is not a member';
  switch (entry.kind) {
    case 'leave':
      return role === 'creator' ? 'the creator cannot leave' : null;
    case 'remove':
      return removeProblem(entry, control, view);
    case 'role':
      return roleProblem(entry, control, view);
    case 'title':
      return role === 'member' ? 'only admins can change the title' : null;
    case 'rekey':
      return role === 'member' ? 'only admins can change the link' : null;
    default:
      return null;
  }
}

/** Why an entry with a verified signature is rejected, or null if it is admitted. */
export function admissionProblem(entry: Entry, control: ControlLog, position: Position): string | null {
  // protocol-groups.md, step 4
  const problem = shapeProblem(entry) ?? positionProblem(entry, position);
  if (problem !== null) return problem;
  if (entry.kind === 'create') return control.size === 0 ? null : 'the group already has a first entry';
  if (entry.delegation.issuedAt < control.newestDelegation(position.view, entry.author))
    return 'the author has a newer key';
  if (entry.kind === 'join') return joinProblem(entry, control, position);
  return memberProblem(entry, control, position.view);
}
