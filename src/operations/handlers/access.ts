/** Handlers of the access list operations. */
import { createHash } from 'node:crypto';
import type { Static } from 'typebox';
import type { AccessLists, AllowInput } from '../../capabilities/access/access-lists.ts';
import type { Callers } from '../../capabilities/access/callers.ts';
import type { AccessRequests } from '../../capabilities/access/requests.ts';
import type { Chat } from '../../capabilities/chat/chat.ts';
import type { PublicClient } from '../../capabilities/exposures/exposures.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { AccessDecision } from '../../foundation/domain/access.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { AccessRequestRow } from '../../foundation/store/access-requests.ts';
import type { AllowBody, accessOperations, accessRequestOperations } from '../access.ts';
import type { Handlers, OutputOf } from '../operation.ts';
import { listPage, numberCursor } from '../paging.ts';
import type { OwnAgents } from './local-agents.ts';
import { timeOf, timeOrNull } from './values.ts';

export interface AccessHandlerDependencies extends OwnAgents {
  readonly access: AccessLists;
  readonly callers: Callers;
  /** The current access decision for a caller. */
  readonly decide: (called: Aid, caller: Aid) => AccessDecision;
  /** Clients of the public addresses of an agent. */
  readonly publicClients: (aid: Aid) => readonly PublicClient[];
  /** Labels of the address book, by AID. */
  readonly labels: () => Readonly<Record<string, string>>;
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
  publicClients,
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
        public_clients: publicClients(called).map(({ lastAt, ...one }) => ({ ...one, last_at: isoTime(lastAt) })),
      };
    },
    aclGet: ({ aid, ...query }) => {
      const { allow, deny, ...defaults } = access.view(requireAgent(aid));
      const sortable = [
        ...allow.map(({ id, created_at }) => ({ sortKey: `allow ${created_at} ${id}`, entry: id })),
        ...deny.map(({ id, created_at }) => ({ sortKey: `deny ${created_at} ${id}`, entry: id })),
      ];
      const { entries, next_cursor } = listPage(sortable, query);
      const ids = new Set(entries);
      return {
        ...defaults,
        allow: allow.filter(({ id }) => ids.has(id)),
        deny: deny.filter(({ id }) => ids.has(id)),
        next_cursor,
      };
    },
    aclPatch: ({ aid, default: policy, temporary }) => {
      access.setDefault(requireAgent(aid), policy, temporary === true);
      return OK;
    },
    aclAllow: ({ aid, body_aid, tools, service_tcp: service, ...entry }) =>
      access.allow(requireAgent(aid), { ...newAllowEntry(body_aid, entry), tools, service }),
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

// Requests for access, and chat requests, which the owner decides in the same way.

export interface AccessRequestHandlerDependencies {
  readonly requests: AccessRequests;
  readonly chat: Chat;
  readonly labels: () => Readonly<Record<string, string>>;
  readonly isKnown: (aid: Aid, peer: Aid) => boolean;
}

type RequestView = OutputOf<typeof accessRequestOperations.accessRequests>['requests'][number];

/** The ID of a chat request: the same as long as it is pending with this note. */
function chatId({ aid, peer, note }: { readonly aid: Aid; readonly peer: Aid; readonly note: string }): string {
  return createHash('sha256').update(`chat ${aid} ${peer} ${note}`).digest('hex').slice(0, 16);
}

/** A request, without the names of its agents. */
export function accessRequestView(row: AccessRequestRow) {
  return {
    id: row.id,
    kind: row.kind,
    asked: row.asked,
    tool: row.tool,
    note: row.note,
    ...(row.name === null ? {} : { name: row.name }),
    state: row.isOnce ? ('allowed_once' as const) : ('pending' as const),
    ...(row.tools === null ? {} : { tools: [...row.tools] }),
    count: row.count,
    first_at: isoTime(row.firstAt),
    last_at: isoTime(row.lastAt),
    expires_at: isoTime(row.expiresAt),
  };
}

export function accessRequestHandlers({
  requests,
  chat,
  labels,
  isKnown,
}: AccessRequestHandlerDependencies): Handlers<typeof accessRequestOperations> {
  const invitation = (id: string) => chat.invitations().find((one) => chatId(one) === id);
  const all = (): RequestView[] => {
    const names = labels();
    const who = (aid: Aid, caller: Aid) => ({
      aid,
      caller,
      label: names[caller] ?? null,
      known: isKnown(aid, caller),
    });
    const asked = requests.list().map((row) => ({ ...who(row.called, row.caller), ...accessRequestView(row) }));
    const chats = chat.invitations().map((one) => ({
      id: chatId(one),
      ...who(one.aid, one.peer),
      kind: 'chat' as const,
      asked: '',
      tool: null,
      note: one.note,
      state: 'pending' as const,
      count: 1,
      first_at: isoTime(one.since),
      last_at: isoTime(one.since),
      expires_at: timeOrNull(one.expiresAt),
    }));
    return [...asked, ...chats];
  };
  return {
    accessRequests: (query) => {
      const sortable = all().map((entry) => {
        const age = numberCursor(Number.MAX_SAFE_INTEGER - Date.parse(entry.last_at));
        return { sortKey: `${entry.known ? 0 : 1}${age}${entry.id}`, entry };
      });
      const { entries, next_cursor } = listPage(sortable, query);
      return { requests: entries, next_cursor };
    },
    accessRequestAllow: async ({ id, once, tools, expires_at: end }) => {
      const asked = invitation(id);
      if (asked === undefined) {
        await requests.allow(id, { once, tools, expiresAt: timeOf(end) });
        return OK;
      }
      if (once === true || tools !== undefined || end !== undefined)
        throw new SvcError('invalid_request', {
          message: 'A chat request can only be accepted or declined as a whole.',
        });
      chat.accept(asked.aid, asked.peer);
      return OK;
    },
    accessRequestRefuse: ({ id, expires_at: end }) => {
      const asked = invitation(id);
      if (asked === undefined) requests.refuse(id, timeOf(end));
      else if (end === undefined) chat.refuse(asked.aid, asked.peer);
      else
        throw new SvcError('invalid_request', {
          message: 'A chat request is declined once. To keep out its sender, block it with "svc chat block".',
        });
      return OK;
    },
  };
}
