/** Operations on file offers between agents. */
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
import { FilePath, HOLDER_ERRORS, Name, ObjectId, Size, STORE_ERRORS } from './objects.ts';
import { AidParams, AidText, closed, Id, NONE, oneOf, Timestamp } from './schemas.ts';

const STREAMS = { tag: 'Files' };
const COMMON = { ...STREAMS, heartbeat: true } as const;
const OfferParams = closed({ aid: AidText, id: Id });

const FileOffer = Type.Object({
  id: Type.String(),
  direction: oneOf(FILE_OFFER_DIRECTIONS),
  peer: AidText,
  object_id: Type.Optional(Type.String()),
  name: Type.String(),
  size: Size,
  message: Type.Optional(Type.String()),
  state: oneOf(FILE_OFFER_STATES),
  at: Timestamp,
  expires_at: Timestamp,
  received_bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Bytes downloaded so far below files_root.' })),
  sent_bytes: Type.Optional(Type.Integer({ minimum: 0, description: 'Bytes read so far.' })),
  hashed_bytes: Type.Optional(Type.Integer({ description: 'Bytes hashed so far.' })),
  problem: Type.Optional(Type.String({ description: 'Why it was withdrawn.' })),
});

export const fileOfferOperations = declare(COMMON, {
  fileOffer: {
    summary:
      'Offers a file to another agent, online or not. The recipient can read it until the offer ends. Send one of object_id, path and size. With path or size, the file is hashed after the offer is made; see `hashed_bytes`.',
    route: 'POST /agents/{aid}/file-offers',
    params: AidParams,
    body: closed({
      recipient: AidText,
      object_id: Type.Optional(ObjectId),
      path: Type.Optional(FilePath),
      size: Type.Optional(
        Type.Integer({
          minimum: 0,
          description: 'Bytes of a file that is sent to `content` within 60 s. Needs a name.',
        }),
      ),
      name: Name,
      message: Type.Optional(Type.String({ maxLength: MAX_OFFER_MESSAGE_CHARS })),
      temporary: Type.Optional(
        Type.Boolean({ default: false, description: 'The object is deleted when its last offer ends.' }),
      ),
    }),
    output: Type.Object({
      id: Type.String(),
      delivered: Type.Boolean({ description: "The recipient's node has the offer." }),
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
      'files_root_required',
      'not_writable',
      'resolve_failed',
      'network_unavailable',
      'clock_wrong',
      'bad_delegation',
      'not_acknowledged',
      'timeout',
    ],
  },

  fileOfferList: {
    summary: 'Lists the files offered to and by an agent, newest first.',
    route: 'GET /agents/{aid}/file-offers',
    params: AidParams,
    query: closed({
      direction: Type.Optional(oneOf(FILE_OFFER_DIRECTIONS)),
      all: Type.Optional(Type.Boolean({ default: false, description: 'Include finished offers.' })),
    }),
    output: Type.Object({
      offers: Type.Array(FileOffer, { maxItems: MAX_OPEN_OFFERS + MAX_OPEN_OFFERS_MADE + MAX_SETTLED_OFFERS }),
    }),
    errors: ['not_found'],
    tool: {
      name: 'svc_file_offers',
      description: 'Files offered to or by it.',
      omit: ['direction', 'all'],
      foreignText: true,
    },
  },

  fileOfferGet: {
    summary: 'Shows a file offer, its state and progress.',
    route: 'GET /agents/{aid}/file-offers/{id}',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found'],
  },

  fileOfferAccept: {
    summary:
      'Downloads an offered file below files_root, resumes a broken download, and notifies the sender. If the name is in use, a number is added.',
    route: 'POST /agents/{aid}/file-offers/{id}/accept',
    params: OfferParams,
    output: Type.Object({ path: Type.String({ description: 'Absolute path of the file.' }) }),
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', 'cancelled', ...STORE_ERRORS, ...HOLDER_ERRORS],
    tool: { name: 'svc_file_take', description: 'Get an offered file.', foreignText: true },
  },

  fileOfferTaken: {
    summary: 'Reports that the whole content of an offer was read. The sender is notified.',
    route: 'POST /agents/{aid}/file-offers/{id}/taken',
    params: OfferParams,
    output: FileOffer,
    permission: 'local_only',
    errors: ['not_found', 'wrong_state'],
  },

  fileOfferDecline: {
    summary: 'Declines a file offer. The sender is notified.',
    route: 'POST /agents/{aid}/file-offers/{id}/decline',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found', 'wrong_state'],
  },

  fileOfferWithdraw: {
    summary:
      'Withdraws a file offer. It no longer allows the recipient to read the file, and the recipient is notified.',
    route: 'DELETE /agents/{aid}/file-offers/{id}',
    params: OfferParams,
    output: FileOffer,
    errors: ['not_found', 'wrong_state'],
  },
});

export const fileOfferStreams = declareStreams(STREAMS, {
  fileOfferUpload: {
    summary:
      'Receives the file of an offer that was made with a size. The recipient can read it meanwhile. If it fails, the offer is withdrawn.',
    methods: ['POST'],
    path: '/agents/{aid}/file-offers/{id}/content',
    params: OfferParams,
    query: NONE,
    accepts: 'application/octet-stream',
    produces: 'application/json',
    output: FileOffer,
    permission: 'local_only',
    errors: ['unsupported_media_type', 'not_found', 'wrong_state', 'timeout', 'cancelled', ...STORE_ERRORS],
  },

  fileOfferHashes: {
    summary:
      'Reads the prefix hashes of an offered file from its sender, to verify each 4 MiB when they arrive. Hash number n is the SHA-256 of the first n+1 ranges of 4 MiB, 32 bytes; the last one is the SHA-256 of the file.',
    methods: ['GET'],
    path: '/agents/{aid}/file-offers/{id}/hashes',
    params: OfferParams,
    query: closed({ from: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: 'First hash.' })) }),
    produces: 'application/octet-stream',
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', ...HOLDER_ERRORS],
  },

  fileOfferContent: {
    summary: 'Reads an offered file from its sender; supports `Range`. Report the complete download with `taken`.',
    methods: ['GET'],
    path: '/agents/{aid}/file-offers/{id}/content',
    params: OfferParams,
    query: NONE,
    produces: 'application/octet-stream',
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', ...HOLDER_ERRORS],
  },
});
