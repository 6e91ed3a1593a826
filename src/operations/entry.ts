/** Operations on this node as an entry for public names. */
import { Type } from 'typebox';
import { MAX_PUBLIC_NAME_CHARS } from '../foundation/domain/public-names.ts';
import { declare } from './declare.ts';
import { joiningOperations } from './joining.ts';
import { AidParams, AidText, closed, nullable, Ok, Timestamp } from './schemas.ts';

const Count = Type.Integer({ minimum: 0 });

export const entryOperations = declare(
  { tag: 'Public addresses' },
  {
    entryShow: {
      summary: 'Shows this node as an entry: domains, permitted agents, names and connections.',
      route: 'GET /node/entry',
      output: Type.Object({
        domains: Type.Array(Type.String(), { description: 'Of `public_names`. Empty: this node is no entry.' }),
        ports: Type.Array(Type.Integer(), { description: 'TCP ports that receive connections.' }),
        problem: nullable(
          Type.Object({ code: Type.String(), message: Type.String() }, { description: 'Why port 443 is not open.' }),
        ),
        allowed: Type.Array(Type.Object({ aid: AidText, created_at: Timestamp })),
        names: Type.Array(
          Type.Object({
            name: Type.String(),
            aid: AidText,
            held_at: Timestamp,
            seen_at: Type.String({ format: 'date-time', description: 'The last claim.' }),
            connections: Count,
          }),
        ),
        connections: Count,
        accepted: Count,
        refused: Count,
        failed: Type.Integer({ minimum: 0, description: 'The node of the agent was not reached.' }),
        bytes: Count,
      }),
    },

    entryAllow: {
      summary: 'Permits an agent to hold public names here.',
      route: 'PUT /node/entry/allowed/{aid}',
      params: AidParams,
      output: Ok,
      errors: ['wrong_state', 'quota_exceeded'],
    },

    entryDeny: {
      summary: 'Withdraws the permission of an agent, with its names. Their connections close immediately.',
      route: 'DELETE /node/entry/allowed/{aid}',
      params: AidParams,
      output: Ok,
      errors: ['bad_aid', 'not_found'],
    },

    entryNameRemove: {
      summary: 'Frees a public name. Its connections close immediately.',
      route: 'DELETE /node/entry/names/{name}',
      params: closed({ name: Type.String({ maxLength: MAX_PUBLIC_NAME_CHARS }) }),
      output: Ok,
      errors: ['not_found'],
    },

    entryInvite: {
      summary: 'Creates an invitation to this network that also permits one agent to hold public names here.',
      route: 'POST /node/entry/invitations',
      output: joiningOperations.invite.output,
      status: 201,
      errors: ['wrong_state'],
    },
  },
);
