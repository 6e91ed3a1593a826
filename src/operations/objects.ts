/** Objects: bytes named by their hash. */
import { Type } from 'typebox';
import { MAX_ACCESS_TOKEN_CHARS } from '../foundation/domain/access.ts';
import { HOLDER_STATUSES, MAX_FILE_PATH_CHARS, SHA256_PATTERN } from '../foundation/domain/objects.ts';
import { declare, declareStreams } from './declare.ts';
import { AidParams, AidText, Base64, closed, NONE, nullable, Ok, oneOf, Timestamp } from './schemas.ts';
import { REACH_ERRORS } from './tunnels.ts';

const STREAMS = { params: AidParams, tag: 'Objects' };
const COMMON = { ...STREAMS, heartbeat: true } as const;

/** Longest file name, characters. */
const MAX_NAME_CHARS = 1024;
/** Default and largest page of the list of objects. */
export const OBJECTS_PAGE_DEFAULT = 100;
export const MAX_OBJECTS_PAGE = 1_000;

export const ObjectId = Type.String({ pattern: SHA256_PATTERN, description: 'SHA-256 of the bytes, lower-case hex.' });
export const Size = Type.Integer({ minimum: 0, description: 'Bytes.' });
export const Name = Type.Optional(Type.String({ maxLength: MAX_NAME_CHARS, description: 'File name.' }));
export const FilePath = Type.String({ minLength: 1, maxLength: MAX_FILE_PATH_CHARS });

export const StoredObject = Type.Object({
  object_id: ObjectId,
  size: Size,
  name: Type.String(),
  url: Type.String({ description: '`svc://<holder>/cas/<object_id>`.' }),
});

export const STORE_ERRORS = ['files_root_required', 'quota_exceeded', 'not_writable'] as const;
/** Errors of reaching a node that has the object. */
export const HOLDER_ERRORS = REACH_ERRORS.filter(
  (code) => !['local_aid_required', 'no_inbound', 'inbound_unreachable', 'relay_required'].includes(code),
);

export const objectOperations = declare(COMMON, {
  objectList: {
    summary: 'Lists the objects of an agent and the used part of its quota.',
    route: 'GET /agents/{aid}/cas',
    query: closed({
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MAX_OBJECTS_PAGE,
          default: OBJECTS_PAGE_DEFAULT,
          description: 'Maximum number of objects.',
        }),
      ),
      cursor: Type.Optional(
        Type.String({ pattern: SHA256_PATTERN, description: '`next_cursor` of the previous page.' }),
      ),
    }),
    output: Type.Object({
      objects: Type.Array(
        Type.Object({
          ...StoredObject.properties,
          created_at: Timestamp,
          path: nullable(
            Type.String({ description: 'Path below files_root, if the file was registered without a copy.' }),
          ),
        }),
      ),
      next_cursor: Type.Optional(ObjectId),
      hashing: Type.Optional(
        Type.Array(Type.Object({ path: Type.String(), size: Size, hashed_bytes: Size }), {
          description: 'Files below files_root that are being hashed.',
        }),
      ),
      usage: Type.Object({ count: Size, max_count: Size, bytes: Size, max_bytes: Size }),
    }),
    errors: ['not_found'],
  },

  objectDelete: {
    summary: 'Deletes an object. A file registered without a copy stays. Needs the token, if one is set.',
    route: 'DELETE /agents/{aid}/cas/{object_id}',
    params: closed({ aid: AidText, object_id: ObjectId }),
    output: Ok,
    permission: 'local_only',
    errors: ['not_found'],
  },

  objectPut: {
    summary: 'Makes an object from a file below files_root or from bytes. Needs the token, if one is set.',
    route: 'POST',
    body: closed({
      path: Type.Optional(FilePath),
      body_base64: Type.Optional(Base64),
      name: Name,
    }),
    output: StoredObject,
    permission: 'local_only',
    errors: ['not_found', 'wrong_state', ...STORE_ERRORS],
    tool: {
      name: 'group_object_put',
      description: 'Make a file below files_root or body_base64 an object.',
      idempotent: true,
    },
  },

  objectLocate: {
    summary: 'Finds agents that have an object. Downloads nothing.',
    route: 'GET',
    query: closed({ object_id: ObjectId, hint_aid: Type.Optional(AidText) }),
    output: Type.Object({
      object_id: ObjectId,
      found: Type.Boolean(),
      local: Type.Boolean({ description: 'The agent itself has it.' }),
      size: Type.Optional(Size),
      name: Type.Optional(Type.String()),
      holders: Type.Array(
        Type.Object({
          aid: AidText,
          status: oneOf(HOLDER_STATUSES),
          size: Type.Optional(Size),
          name: Type.Optional(Type.String()),
        }),
      ),
    }),
    errors: ['not_found'],
    tool: { name: 'group_object_locate', description: 'Find holders of an object.', foreignText: true },
  },

  objectGet: {
    summary: 'Downloads an object to a file below files_root from any agent that has it. Resumes a broken download.',
    route: 'POST',
    body: closed({
      object_id: ObjectId,
      dest: Type.Optional(FilePath),
      hint_aid: Type.Optional(AidText),
      register: Type.Optional(Type.Boolean({ default: false, description: 'Offer it from here.' })),
      force: Type.Optional(Type.Boolean({ default: false, description: 'Overwrites dest.' })),
      access_token: Type.Optional(Type.String({ maxLength: MAX_ACCESS_TOKEN_CHARS, description: 'For the holder.' })),
    }),
    output: Type.Object({
      object_id: ObjectId,
      size: Size,
      path: Type.String({ description: 'Absolute path of the file.' }),
      from: nullable(AidText),
      registered: Type.Boolean(),
    }),
    permission: 'local_only',
    errors: ['not_found', 'gone', 'wrong_state', 'cancelled', ...STORE_ERRORS, ...HOLDER_ERRORS],
    tool: { name: 'group_object_get', description: 'Download an object below files_root.', idempotent: true },
  },
});

export const objectStreams = declareStreams(STREAMS, {
  objectUpload: {
    summary:
      'Stores the request body as an object, without a size limit for the request. Needs the token, if one is set.',
    methods: ['POST'],
    path: '/agents/{aid}/cas',
    query: closed({ name: Name }),
    accepts: 'application/octet-stream',
    produces: 'application/json',
    output: StoredObject,
    permission: 'local_only',
    errors: ['unsupported_media_type', 'not_found', 'timeout', ...STORE_ERRORS],
  },

  objectRead: {
    summary: 'Reads an object from an agent that has it, as this node. Supports `Range` and `If-None-Match`.',
    methods: ['GET', 'HEAD'],
    path: '/aid/{holder}/cas/{object_id}',
    params: closed({ holder: AidText, object_id: ObjectId }),
    query: NONE,
    produces: 'application/octet-stream',
    permission: 'peer',
    errors: ['not_found', 'gone', ...HOLDER_ERRORS],
  },
});
