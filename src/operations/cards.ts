/** Operations on the cards by which agents introduce themselves to programs of other protocols. */
import { Type } from 'typebox';
import { CARD_KINDS } from '../foundation/cards/card.ts';
import { SHA256_PATTERN } from '../foundation/domain/hashes.ts';
import { declare } from './declare.ts';
import { PUBLISH_ERRORS, RESOLVE_ERRORS } from './directory.ts';
import { AidParams, AidText, closed, freeForm, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

const ObjectId = Type.String({ pattern: SHA256_PATTERN, description: 'SHA-256 of the signed card.' });

const Signed = {
  aid: AidText,
  kind: oneOf(CARD_KINDS),
  card: freeForm('The card, with its signatures.'),
  object_id: ObjectId,
  signed_at: Timestamp,
};

const LeftInterface = Type.Object({
  protocol_binding: nullable(Type.String({ description: 'What it speaks; null where the card does not say.' })),
  address: Type.String({ description: 'Where it leads: `host:port`.' }),
  service_port: Type.Integer({ description: 'The port that interfaces of its kind have to be at.' }),
});

const OwnCard = Type.Object(Signed);

export const cardOperations = declare(
  { params: AidParams, heartbeat: true, tag: 'Directory' },
  {
    cardSet: {
      summary:
        'Takes over the card of an agent (A2A, MCP): signs it, keeps it as an object, and has the profile name it.',
      route: 'PUT /agents/{aid}/card',
      body: closed({ card: freeForm('The card, as its service shows it.') }),
      output: Type.Object({
        ...Signed,
        seq: Type.Integer({ minimum: 0 }),
        replicas: Type.Integer({ minimum: 0, description: 'Other nodes that verified and keep the profile.' }),
        left_out: Type.Array(LeftInterface, {
          description: 'Interfaces that the signed card lacks, as the agent is not bound to their ports.',
        }),
      }),
      errors: [...PUBLISH_ERRORS, 'bad_card', 'too_large', 'files_root_required', 'quota_exceeded', 'not_writable'],
    },

    cardGet: {
      summary: 'The signed card of an agent here.',
      route: 'GET /agents/{aid}/card',
      output: OwnCard,
      errors: ['bad_aid', 'not_found'],
    },

    cardDelete: {
      summary: 'Lets go of the card of an agent; its profile names none any more.',
      route: 'DELETE /agents/{aid}/card',
      output: Ok,
      errors: PUBLISH_ERRORS,
    },

    card: {
      summary: 'The card for which an agent vouches, verified; of an agent that is away the one that was seen last.',
      route: 'GET /resolve/{aid}/card',
      query: closed({ local_aid: Type.Optional(AidText) }),
      output: Type.Object({
        ...Signed,
        expires_at: nullable(Timestamp),
        is_current: Type.Boolean({
          description: 'False where nobody could be asked whether the agent has another one by now.',
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
      tool: { name: 'svc_card', description: 'The signed A2A or MCP card of an agent.', foreignText: true },
    },
  },
);
