/** Binds the operations on access lists. */
import type { AccessLists } from '../../capabilities/access/access-lists.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import * as operations from '../access.ts';
import { type BoundOperation, bind } from '../operation.ts';

export interface AccessHandlerDependencies {
  readonly access: AccessLists;
  /** @throws SvcError `not_found` where no such agent is registered here */
  readonly requireAgent: (aid: Aid) => void;
}

const OK = { ok: true as const };

export function accessHandlers({ access, requireAgent }: AccessHandlerDependencies): BoundOperation[] {
  const agent = (text: string): Aid => {
    const aid = parseAid(text);
    requireAgent(aid);
    return aid;
  };
  return [
    bind(operations.aclGet, ({ aid }) => access.view(agent(aid))),
    bind(operations.aclPatch, ({ aid, default: policy }) => {
      access.setDefault(agent(aid), policy);
      return OK;
    }),
    bind(operations.aclAllow, (input) =>
      access.allow(agent(input.aid), {
        ...(input.body_aid === undefined ? {} : { aid: input.body_aid }),
        ...(input.secret === undefined ? {} : { secret: input.secret }),
        ...(input.generate_secret === undefined ? {} : { generateSecret: input.generate_secret }),
        ...(input.label === undefined ? {} : { label: input.label }),
        ...(input.expires_at === undefined ? {} : { expiresAt: Date.parse(input.expires_at) }),
      }),
    ),
    bind(operations.aclDeny, (input) => access.deny(agent(input.aid), input.body_aid)),
    bind(operations.aclAllowDelete, ({ aid, id }) => {
      access.removeAllow(agent(aid), id);
      return OK;
    }),
    bind(operations.aclDenyDelete, ({ aid, id }) => {
      access.removeDeny(agent(aid), id);
      return OK;
    }),
  ];
}
