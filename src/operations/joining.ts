/** Operations on coming into a network: invitations, and the nodes to come in by. */
import { Type } from 'typebox';
import { INVITATION_REACHES, MAX_INVITATION_CHARS, MEETING_STATES } from '../foundation/domain/joining.ts';
import { declare } from './declare.ts';
import { NextCursor, PageQuery } from './paging.ts';
import { closed, oneOf } from './schemas.ts';

const COMMON = { tag: 'Node' };
const NETWORK = Type.String({ description: 'Name of the network; empty for the one without a name.' });
const CONTACT = { description: '`<node aid>@host:port`, or `host:port`.', maxLength: MAX_INVITATION_CHARS };

export const joiningOperations = declare(COMMON, {
  invite: {
    summary: 'A line by which another node comes into this network.',
    route: 'GET /node/invitation',
    output: Type.Object({
      invitation: Type.String({ description: '`svc://<node aid>/join/<data>`' }),
      network: NETWORK,
      contacts: Type.Array(Type.String(CONTACT), { description: 'What it tells: nodes, and where they are.' }),
      reach: oneOf(INVITATION_REACHES, {
        description:
          'From where it can be used: `anywhere`, `helped` by other nodes, `unproven` where nobody has reached this node at its address yet, `lan`, `machine`.',
      }),
    }),
  },

  join: {
    summary: 'Comes into a network by an invitation or by a node; it applies at once and is kept.',
    route: 'POST /node/join',
    body: closed({
      to: Type.String({
        description: 'An invitation, or `host`, `host:port` or `<node aid>@host:port`.',
        minLength: 1,
        maxLength: MAX_INVITATION_CHARS,
      }),
    }),
    output: Type.Object({
      ok: Type.Literal(true),
      network: NETWORK,
      by: Type.String({ ...CONTACT, description: 'The node that answered first.' }),
      dht_peers: Type.Integer({ minimum: 0 }),
      network_ready: Type.Boolean(),
    }),
    errors: ['self', 'wrong_state', 'connect_failed'],
  },

  contacts: {
    summary: 'The nodes to come into the network by, and how the last attempt with each ended.',
    route: 'GET /node/contacts',
    query: PageQuery,
    output: Type.Object({
      contacts: Type.Array(
        Type.Object({
          contact: Type.String(CONTACT),
          joined: Type.Boolean({ description: 'By `POST /node/join`; the others come from the configuration.' }),
          state: oneOf(MEETING_STATES, {
            description:
              '`untried`; `unresolved` its name has no address; `ipv6` it has no IPv4 address; `silent` no answer; `other_key` a node answers that does not prove the key; `met`.',
          }),
          addresses: Type.Array(Type.String(), { description: 'Where its name leads.' }),
        }),
      ),
      next_cursor: NextCursor,
    }),
  },

  contactForget: {
    summary: 'Takes back a join.',
    route: 'DELETE /node/contacts/{contact}',
    params: closed({ contact: Type.String(CONTACT) }),
    output: Type.Object({ ok: Type.Literal(true) }),
    errors: ['not_found', 'wrong_state'],
  },
});
