/** Handlers of the object operations. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Holders, ObjectGetter } from '../../capabilities/objects/object-getter.ts';
import { headersOf } from '../../capabilities/objects/object-response.ts';
import type { ObjectService } from '../../capabilities/objects/object-service.ts';
import { objectResource, type RemoteObjects, verifiedBytes } from '../../capabilities/objects/remote-objects.ts';
import type { ObjectInfo } from '../../capabilities/objects/types.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { awakeClock } from '../../foundation/stall.ts';
import { OBJECTS_PAGE_DEFAULT, type objectOperations, type objectStreams } from '../objects.ts';
import type { Handlers } from '../operation.ts';
import type { StreamExchange, StreamHandlers } from './exchange.ts';
import type { OwnAgents } from './local-agents.ts';
import { bytesOf } from './values.ts';

// Handlers of uploads and reads of objects, whose bytes are streamed.

/** An upload without data for this long is aborted, milliseconds. */
export const UPLOAD_STALL_MS = 60_000;

export interface ObjectStreamDependencies extends OwnAgents {
  readonly objects: Pick<ObjectService, 'store'>;
  readonly remote: Pick<RemoteObjects, 'read'>;
  readonly clock: Clock;
  /** The identity of the node, which reads for the callers of this API. */
  readonly nodeAid: Aid;
  /** Counts an upload as a heartbeat of its agent. */
  readonly heartbeat: (aid: Aid) => void;
}

/** The body of a request, aborted if it stalls. */
export async function* uploadOf(request: IncomingMessage, clock: Clock): AsyncGenerator<Uint8Array> {
  const stall = new SvcError('timeout', { message: 'The upload stalled. Send it again.' });
  const watch = () => awakeClock(clock).after(UPLOAD_STALL_MS, () => request.destroy(stall));
  let timer = watch();
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      timer.cancel();
      yield chunk;
      timer = watch();
    }
  } catch (cause) {
    throw cause instanceof SvcError
      ? cause
      : new SvcError('cancelled', {
          message: 'The upload was interrupted, and nothing was stored. Send it again.',
          cause,
        });
  } finally {
    timer.cancel();
  }
}

/** Answers an upload. */
export function sendJson(response: ServerResponse, value: object): void {
  const body = JSON.stringify(value);
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) };
  response.writeHead(200, headers).end(body);
}

async function upload(exchange: StreamExchange, dependencies: ObjectStreamDependencies): Promise<void> {
  const { request, response, input } = exchange;
  const { objects, clock, requireAgent, heartbeat } = dependencies;
  exchange.context.requireToken();
  const aid = requireAgent(parseAid(String(input['aid'])));
  const { name } = input;
  const length = Number(request.headers['content-length'] ?? 0);
  const stored = await objects.store(
    aid,
    uploadOf(request, clock),
    typeof name === 'string' ? name : undefined,
    length,
  );
  heartbeat(aid);
  sendJson(response, objectView(stored));
}

/**
 * Streams bytes to the client. A failure resets the connection, so that the client does not accept a partial response.
 */
export async function sendBody(source: AsyncIterable<Uint8Array>, response: ServerResponse): Promise<void> {
  await pipeline(Readable.from(source, { objectMode: false }), response).catch(() => void response.destroy());
}

async function read(exchange: StreamExchange, { remote, nodeAid }: ObjectStreamDependencies): Promise<void> {
  const { request, response, input, context } = exchange;
  // A path in another spelling, such as with escapes, was not checked as remote content. A service worker would see
  // the requests of other pages.
  if (request.url?.startsWith('/aid/') !== true || request.headers['service-worker'] !== undefined)
    throw new SvcError('not_found');
  const objectId = String(input['object_id']);
  const method = request.method === 'HEAD' ? 'HEAD' : 'GET';
  const { headers } = request;
  const holder = parseAid(String(input['holder']));
  const asked = { local: nodeAid, holder, resource: objectResource(objectId), method, headers } as const;
  const object = await remote.read({ ...asked, signal: context.signal });
  const { status, body } = object;
  response.once('close', () => body.destroy());
  response.writeHead(status, headersOf(object, objectId));
  if (method === 'HEAD' || status === 304 || status === 416) {
    body.resume();
    response.end();
  } else await sendBody(status === 200 ? verifiedBytes(body, objectId) : body, response);
}

export function objectStreamHandlers(dependencies: ObjectStreamDependencies): StreamHandlers<typeof objectStreams> {
  return {
    objectUpload: (exchange) => upload(exchange, dependencies),
    objectRead: (exchange) => read(exchange, dependencies),
  };
}

export interface ObjectHandlerDependencies extends OwnAgents {
  readonly objects: ObjectService;
  readonly holders: Holders;
  readonly getter: ObjectGetter;
}

/** An object in the form of the API. */
export function objectView({ objectId, size, name, url }: ObjectInfo) {
  return { object_id: objectId, size, name, url };
}

/** @throws SvcError `invalid_request` */
function sourceOf({ path, body_base64: body }: { readonly path?: string; readonly body_base64?: string }) {
  if ((path === undefined) === (body === undefined))
    throw new SvcError('invalid_request', {
      message: 'Send exactly one of path and body_base64.',
      details: { path: '/path' },
    });
  return path === undefined ? { bytes: bytesOf(body ?? '', 'body_base64') } : { path };
}

export function objectHandlers(dependencies: ObjectHandlerDependencies): Handlers<typeof objectOperations> {
  const { objects, holders, getter, requireAgent } = dependencies;
  return {
    objectList: ({ aid, limit = OBJECTS_PAGE_DEFAULT, cursor }) => {
      const page = objects.list(requireAgent(aid), limit, cursor);
      const last = page.objects.length < limit ? undefined : page.objects.at(-1)?.objectId;
      const { usage, quota, hashing } = page;
      return {
        objects: page.objects.map((one) => ({
          ...objectView(one),
          created_at: isoTime(one.createdAt),
          path: one.path,
        })),
        next_cursor: last,
        hashing:
          hashing.length === 0
            ? undefined
            : hashing.map(({ path, size, hashed }) => ({ path, size, hashed_bytes: hashed })),
        usage: { count: usage.count, max_count: quota.count, bytes: usage.bytes, max_bytes: quota.bytes },
      };
    },
    objectDelete: ({ aid, object_id }, context) => {
      context.requireToken();
      objects.delete(requireAgent(aid), object_id);
      return { ok: true };
    },
    objectPut: async ({ aid, name, ...source }, context) => {
      context.requireToken();
      return objectView(await objects.put(requireAgent(aid), sourceOf(source), name));
    },
    objectLocate: async ({ aid, object_id, hint_aid }, { signal }) => {
      const { local, holders: found } = await holders.locate(requireAgent(aid), object_id, hint_aid, signal);
      const known = local ?? found.find((holder) => holder.status === 'available');
      return {
        object_id,
        found: known !== undefined,
        local: local !== null,
        size: known?.size,
        name: known?.name,
        holders: found,
      };
    },
    objectGet: async (input, { signal }) => {
      const got = await getter.get({
        aid: requireAgent(input.aid),
        objectId: input.object_id,
        dest: input.dest,
        hint: input.hint_aid,
        register: input.register ?? false,
        force: input.force ?? false,
        accessToken: input.access_token,
        signal,
      });
      const { objectId, size, path, from, registered } = got;
      return { object_id: objectId, size, path, from, registered };
    },
  };
}
