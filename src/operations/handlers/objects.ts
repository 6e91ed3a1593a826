/** Handlers of the object operations. */
import type { Holders, ObjectGetter } from '../../capabilities/objects/object-getter.ts';
import type { ObjectService } from '../../capabilities/objects/object-service.ts';
import type { ObjectInfo } from '../../capabilities/objects/types.ts';
import { isoTime } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { OBJECTS_PAGE_DEFAULT, type objectOperations } from '../objects.ts';
import type { Handlers } from '../operation.ts';
import { bytesOf } from './values.ts';

export interface ObjectHandlerDependencies {
  readonly objects: ObjectService;
  readonly holders: Holders;
  readonly getter: ObjectGetter;
  /** @throws SvcError `not_found` if the agent is not registered here */
  readonly requireAgent: (aid: Aid) => Aid;
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
      const { usage, quota } = page;
      return {
        objects: page.objects.map((one) => ({
          ...objectView(one),
          created_at: isoTime(one.createdAt),
          path: one.path,
        })),
        next_cursor: last,
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
