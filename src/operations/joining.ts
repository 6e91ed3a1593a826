/** Operations on joining a network: invitations and contacts. */
import { Type } from 'typebox';
import { INVITATION_REACHES, MAX_INVITATION_CHARS, MEETING_STATES } from '../foundation/domain/joining.ts';
import { MAX_PORT } from '../foundation/domain/tunnels.ts';
import { declare } from './declare.ts';
import { NextCursor, PageQuery } from './paging.ts';
import { AidText, closed, oneOf } from './schemas.ts';

const COMMON = { tag: 'Node' };
const NETWORK = Type.String({ description: 'Name of the network. Empty for the default network.' });
const CONTACT = { description: '`<node aid>@host:port`, or `host:port`.', maxLength: MAX_INVITATION_CHARS };

export const joiningOperations = declare(COMMON, {
  invite: {
    summary: 'Creates an invitation: a line that lets another node join this network.',
    route: 'GET /node/invitation',
    query: closed({
      agent: Type.Optional({ ...AidText, description: 'A local agent to offer to the new node as a contact.' }),
    }),
    errors: ['not_found'],
    output: Type.Object({
      invitation: Type.String({ description: '`svc://<node aid>/join/<data>`' }),
      network: NETWORK,
      name: Type.String({ description: 'The name of this node in the invitation. Empty: none.' }),
      contacts: Type.Array(Type.String(CONTACT), { description: 'Nodes in the invitation, with their addresses.' }),
      reach: oneOf(INVITATION_REACHES, {
        description:
          'Scope of the invitation: `anywhere`; `helped`, through other nodes; `unproven`, not verified from outside; `lan`; `machine`.',
      }),
      tls_ports: Type.Array(Type.Integer({ minimum: 1, maximum: MAX_PORT }), {
        description:
          'TCP ports at which nodes without UDP can join through this node. Networks that allow only HTTPS need 443.',
      }),
    }),
  },

  join: {
    summary: 'Joins a network by an invitation or the address of a node. It applies immediately and after restarts.',
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
      by: Type.String({ ...CONTACT, description: 'The first node that answered.' }),
      dht_peers: Type.Integer({ minimum: 0 }),
      network_ready: Type.Boolean(),
      name: Type.Optional(Type.String({ description: 'The inviting node calls itself so.' })),
      agent: Type.Optional(
        Type.Object(
          { aid: AidText, name: Type.String({ description: 'It calls itself so. Empty: it has no name.' }) },
          { description: 'An agent that the inviting user offers as a contact.' },
        ),
      ),
    }),
    errors: ['self', 'wrong_state', 'connect_failed'],
  },

  contacts: {
    summary: 'Lists the contacts of this node and the result of the last attempt with each.',
    route: 'GET /node/contacts',
    query: PageQuery,
    output: Type.Object({
      contacts: Type.Array(
        Type.Object({
          contact: Type.String(CONTACT),
          name: Type.Optional(Type.String({ description: 'The node calls itself so in its invitation.' })),
          joined: Type.Boolean({
            description: 'Added with `POST /node/join`. Other contacts come from the configuration.',
          }),
          state: oneOf(MEETING_STATES, {
            description:
              '`untried`; `unresolved`: no address found; `ipv6`: no IPv4 address; `silent`: no answer; `other_key`: the node did not prove the key; `met`: it answered.',
          }),
          has_answered: Type.Boolean({ description: 'It has answered since the start of this node.' }),
          addresses: Type.Array(Type.String(), { description: 'Addresses of its host name.' }),
        }),
      ),
      next_cursor: NextCursor,
    }),
  },

  contactForget: {
    summary: 'Removes a contact that was added by `POST /node/join`.',
    route: 'DELETE /node/contacts/{contact}',
    params: closed({ contact: Type.String(CONTACT) }),
    output: Type.Object({ ok: Type.Literal(true) }),
    errors: ['not_found', 'wrong_state'],
  },
});
