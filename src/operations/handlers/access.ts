/** Handlers of the access list operations. */
import type { Static } from 'typebox';
import type { AccessLists, AllowInput } from '../../capabilities/access/access-lists.ts';
import type { Callers } from '../../capabilities/access/callers.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { AccessDecision } from '../../foundation/domain/access.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AllowBody, accessOperations } from '../access.ts';
import type { Handlers } from '../operation.ts';
import { listPage } from '../paging.ts';
import { timeOf } from './values.ts';

export interface AccessHandlerDependencies {
  readonly access: AccessLists;
  readonly callers: Pick<Callers, 'list' | 'since'>;
  /** The current access decision for a caller. */
  readonly decide: (called: Aid, caller: Aid) => AccessDecision;
  /** Labels of the address book, by AID. */
  readonly labels: () => Readonly<Record<string, string>>;
  /** @throws SvcError `not_found` if the agent is not registered here */
  readonly requireAgent: (aid: Aid) => Aid;
}

const OK = { ok: true } as const;

/** The rule of a new allow entry: an AID, or a secret. */
export function newAllowEntry(aid: Aid | undefined, entry: Omit<Static<typeof AllowBody>, 'aid'>): AllowInput {
  const { secret, generate_secret: generateSecret, label, expires_at: end } = entry;
  return { aid, secret, generateSecret, label, expiresAt: timeOf(end) };
}

export function accessHandlers({
  access,
  callers,
  decide,
  labels,
  requireAgent,
}: AccessHandlerDependencies): Handlers<typeof accessOperations> {
  return {
    agentCallers: ({ aid: named }) => {
      const called = requireAgent(named);
      const names = labels();
      return {
        since: isoTime(callers.since),
        callers: callers.list(called).map(({ aid, entered, refused, firstAt, lastAt, lastRefusal }) => ({
          aid,
          label: names[aid] ?? null,
          calls: entered.call,
          tunnels: entered.tunnel,
          objects: entered.object,
          refused,
          first_at: isoTime(firstAt),
          last_at: isoTime(lastAt),
          last_refusal: lastRefusal === null ? null : { ...lastRefusal, at: isoTime(lastRefusal.at) },
          access: decide(called, aid),
        })),
      };
    },
    aclGet: ({ aid, ...query }) => {
      const { default: policy, allow, deny } = access.view(requireAgent(aid));
      const sortable = [
        ...allow.map(({ id, created_at }) => ({ sortKey: `allow ${created_at} ${id}`, entry: id })),
        ...deny.map(({ id, created_at }) => ({ sortKey: `deny ${created_at} ${id}`, entry: id })),
      ];
      const { entries, next_cursor } = listPage(sortable, query);
      const ids = new Set(entries);
      return {
        default: policy,
        allow: allow.filter(({ id }) => ids.has(id)),
        deny: deny.filter(({ id }) => ids.has(id)),
        next_cursor,
      };
    },
    aclPatch: ({ aid, default: policy }) => {
      access.setDefault(requireAgent(aid), policy);
      return OK;
    },
    aclAllow: ({ aid, body_aid, ...entry }) => access.allow(requireAgent(aid), newAllowEntry(body_aid, entry)),
    aclDeny: ({ aid, body_aid }) => access.deny(requireAgent(aid), body_aid),
    aclAllowDelete: ({ aid, id }) => {
      access.remove(requireAgent(aid), 'allow', id);
      return OK;
    },
    aclDenyDelete: ({ aid, id }) => {
      access.remove(requireAgent(aid), 'deny', id);
      return OK;
    },
  };
}
