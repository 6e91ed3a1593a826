/** Operations on A2A and MCP cards of agents. */
import { Type } from 'typebox';
import { CARD_KINDS } from '../foundation/cards/card.ts';
import { SHA256_PATTERN } from '../foundation/domain/objects.ts';
import { declare } from './declare.ts';
import { PUBLISH_ERRORS, RESOLVE_ERRORS } from './directory.ts';
import { AidParams, AidText, closed, freeForm, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

const ObjectId = Type.String({ pattern: SHA256_PATTERN, description: 'SHA-256 of the signed card.' });

const Signed = {
  aid: AidText,
  kind: oneOf(CARD_KINDS),
  card: freeForm('The card with its signatures.'),
  object_id: ObjectId,
  signed_at: Timestamp,
};

const OmittedInterface = Type.Object({
  protocol_binding: nullable(Type.String({ description: 'The protocol. Null if the card does not say.' })),
  address: Type.String({ description: 'Address of the service, `host:port`.' }),
  service_port: Type.Integer({ description: 'Port to which the agent must be bound for this interface.' }),
});

const OwnCard = Type.Object(Signed);

export const cardOperations = declare(
  { params: AidParams, heartbeat: true, tag: 'Directory' },
  {
    cardSet: {
      summary: 'Signs the A2A or MCP card of an agent, stores it as an object and names it in the profile.',
      route: 'PUT /agents/{aid}/card',
      body: closed({ card: freeForm('The card as the service returns it.') }),
      output: Type.Object({
        ...Signed,
        seq: Type.Integer({ minimum: 0 }),
        replicas: Type.Integer({ minimum: 0, description: 'Other nodes that verified and stored the profile.' }),
        left_out: Type.Array(OmittedInterface, {
          description: 'Interfaces missing in the signed card, because the agent is not bound to their ports.',
        }),
      }),
      errors: [...PUBLISH_ERRORS, 'bad_card', 'too_large', 'files_root_required', 'quota_exceeded', 'not_writable'],
    },

    cardGet: {
      summary: 'Returns the signed card of a local agent.',
      route: 'GET /agents/{aid}/card',
      output: OwnCard,
      errors: ['bad_aid', 'not_found'],
    },

    cardDelete: {
      summary: 'Removes the card of an agent, also from its profile.',
      route: 'DELETE /agents/{aid}/card',
      output: Ok,
      errors: PUBLISH_ERRORS,
    },

    card: {
      summary: 'Looks up and verifies the signed card of an agent. If the agent is offline, returns the last one seen.',
      route: 'GET /resolve/{aid}/card',
      query: closed({ local_aid: Type.Optional(AidText) }),
      output: Type.Object({
        ...Signed,
        expires_at: nullable(Timestamp),
        is_current: Type.Boolean({
          description: 'False if it was not possible to check for a newer card.',
        }),
      }),
      errors: [
        ...RESOLVE_ERRORS,
        'not_found',
        'bad_card',
        'access_denied',
        'connect_failed',
        'rate_limited',
        'timeout',
        'protocol_error',
        'gone',
        'local_aid_required',
      ],
      tool: {
        name: 'svc_card',
        description: 'The signed A2A or MCP card of an agent.',
        requiresAid: true,
        foreignText: true,
      },
    },
  },
);
