/** The handlers of the operations on access lists. */
import type { AccessLists } from '../../capabilities/access/access-lists.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { accessOperations } from '../access.ts';
import type { Handlers } from '../operation.ts';

export interface AccessHandlerDependencies {
  readonly access: AccessLists;
  /** @throws SvcError `not_found` where no such agent is registered here */
  readonly requireAgent: (aid: Aid) => void;
}

const OK = { ok: true as const };

export function accessHandlers({ access, requireAgent }: AccessHandlerDependencies): Handlers<typeof accessOperations> {
  const agent = (text: string): Aid => {
    const aid = parseAid(text);
    requireAgent(aid);
    return aid;
  };
  return {
    aclGet: ({ aid }) => access.view(agent(aid)),
    aclPatch: ({ aid, default: policy }) => {
      access.setDefault(agent(aid), policy);
      return OK;
    },
    aclAllow: (input) =>
      access.allow(agent(input.aid), {
        ...(input.body_aid === undefined ? {} : { aid: input.body_aid }),
        ...(input.secret === undefined ? {} : { secret: input.secret }),
        ...(input.generate_secret === undefined ? {} : { generateSecret: input.generate_secret }),
        ...(input.label === undefined ? {} : { label: input.label }),
        ...(input.expires_at === undefined ? {} : { expiresAt: Date.parse(input.expires_at) }),
      }),
    aclDeny: (input) => access.deny(agent(input.aid), input.body_aid),
    aclAllowDelete: ({ aid, id }) => {
      access.removeAllow(agent(aid), id);
      return OK;
    },
    aclDenyDelete: ({ aid, id }) => {
      access.removeDeny(agent(aid), id);
      return OK;
    },
  };
}
