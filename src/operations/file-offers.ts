/** Operations on the files that agents offer one another. */
import { Type } from 'typebox';
import {
  FILE_OFFER_DIRECTIONS,
  FILE_OFFER_STATES,
  MAX_OFFER_MESSAGE_CHARS,
  MAX_OPEN_OFFERS,
  MAX_OPEN_OFFERS_MADE,
  MAX_SETTLED_OFFERS,
} from '../foundation/domain/file-offers.ts';
import { declare, declareStreams } from './declare.ts';
import { HOLDER_ERRORS, Name, ObjectId, Size, STORE_ERRORS } from './objects.ts';
import { AidParams, AidText, closed, Id, NONE, oneOf, Timestamp } from './schemas.ts';

const STREAMS = { tag: 'Files' };
const COMMON = { ...STREAMS, heartbeat: true } as const;
const OfferParams = closed({ aid: AidText, id: Id });

const FileOffer = Type.Object({
  id: Type.String(),
  direction: oneOf(FILE_OFFER_DIRECTIONS),
  peer: AidText,
  object_id: Type.String(),
  name: Type.String(),
  size: Size,
  message: Type.Optional(Type.String()),
  state: oneOf(FILE_OFFER_STATES),
  at: Timestamp,
  expires_at: Timestamp,
  received_bytes: Type.Optional(
    Type.Integer({ minimum: 0, description: 'What of it is here, while it is being got below files_root.' }),
  ),
  sent_bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Up to where the other agent has read it.' })),
});

export const fileOfferOperations = declare(COMMON, {
  fileOffer: {
    summary: 'Offers an object of an agent to another agent, online or not, which may read it until the offer is over.',
    route: 'POST /agents/{aid}/file-offers',
    params: AidParams,
    body: closed({
      recipient: AidText,
      object_id: ObjectId,
      name: Name,
      message: Type.Optional(Type.String({ maxLength: MAX_OFFER_MESSAGE_CHARS })),
      temporary: Type.Optional(
        Type.Boolean({ default: false, description: 'The object is deleted when no offer of it is open any more.' }),
      ),
    }),
    output: Type.Object({
      id: Type.String(),
      delivered: Type.Boolean({ description: "The recipient's node has the offer already." }),
    }),
    permission: 'local_only',
    errors: [
      'bad_aid',
      'not_found',
      'self',
      'access_denied',
      'too_large',
      'rate_limited',
      'quota_exceeded',
      'resolve_failed',
      'network_unavailable',
      'clock_wrong',
      'bad_delegation',
      'not_acknowledged',
      'timeout',
    ],
  },

  fileOfferList: {
    summary: 'Lists the files that are offered to an agent and by it, newest first.',
    route: 'GET /agents/{aid}/file-offers',
    params: AidParams,
    query: closed({
      direction: Type.Optional(oneOf(FILE_OFFER_DIRECTIONS)),
      all: Type.Optional(Type.Boolean({ default: false, description: 'Those that are over, too.' })),
    }),
    output: Type.Object({
      offers: Type.Array(FileOffer, { maxItems: MAX_OPEN_OFFERS + MAX_OPEN_OFFERS_MADE + MAX_SETTLED_OFFERS }),
    }),
    errors: ['not_found'],
    tool: {
      name: 'svc_file_offers',
      description: 'Files offered to and by an agent.',
      omit: ['direction', 'all'],
      foreignText: true,
    },
  },

  fileOfferGet: {
    summary: 'Shows an offer of a file: how far it is read, and what became of it.',
    route: 'GET /agents/{aid}/file-offers/{id}',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found'],
  },

  fileOfferAccept: {
    summary:
      'Gets an offered file below files_root, resumed where it broke off, and tells its sender. Names that are taken get a number.',
    route: 'POST /agents/{aid}/file-offers/{id}/accept',
    params: OfferParams,
    output: Type.Object({ path: Type.String({ description: 'The file, absolute.' }) }),
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', 'cancelled', ...STORE_ERRORS, ...HOLDER_ERRORS],
    tool: { name: 'svc_file_take', description: 'Get an offered file.', foreignText: true },
  },

  fileOfferTaken: {
    summary: 'Says that the bytes of an offer are here, whole: read from its content. Its sender is told.',
    route: 'POST /agents/{aid}/file-offers/{id}/taken',
    params: OfferParams,
    output: FileOffer,
    permission: 'local_only',
    errors: ['not_found', 'wrong_state'],
  },

  fileOfferDecline: {
    summary: 'Refuses an offered file. Its sender is told.',
    route: 'POST /agents/{aid}/file-offers/{id}/decline',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found', 'wrong_state'],
  },

  fileOfferWithdraw: {
    summary: 'Takes an offer of a file back: nobody reads the file because of it any more. The recipient is told.',
    route: 'DELETE /agents/{aid}/file-offers/{id}',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found', 'wrong_state'],
  },
});

export const fileOfferStreams = declareStreams(STREAMS, {
  fileOfferContent: {
    summary: 'Reads an offered file from its sender; `Range` is taken. Who has read all of it says so with `taken`.',
    methods: ['GET'],
    path: '/agents/{aid}/file-offers/{id}/content',
    params: OfferParams,
    query: NONE,
    produces: 'application/octet-stream',
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', ...HOLDER_ERRORS],
  },
});
