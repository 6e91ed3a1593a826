/** Uploads local files. The daemon receives their bytes and no path. */
import { existsSync, openAsBlob } from 'node:fs';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import { SvcError } from '../../foundation/errors.ts';
import { authorization, baseOf, errorOf, failureOf } from '../../operations/client.ts';
import type { AnswerOf } from './client.ts';
import type { CliContext } from './context.ts';

export type Stored = AnswerOf<'objectPut'>;

/**
 * Uploads a local file of any size.
 * @throws SvcError `not_found` if it cannot be read, and other errors of the daemon
 */
export async function uploadFile(context: CliContext, aid: string, file: string, name: string): Promise<Stored> {
  const { token, headers, streamFetch = fetch } = context.connection;
  const base = baseOf(context.connection);
  let body: Blob;
  try {
    body = await openAsBlob(file);
  } catch (cause) {
    throw new SvcError('not_found', { message: `${file} cannot be read.`, cause });
  }
  const response = await streamFetch(`${base}/agents/${aid}/cas?name=${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: {
      ...headers,
      ...authorization(token),
      'content-type': 'application/octet-stream',
      'content-length': String(body.size),
    },
    body,
    redirect: 'error',
  }).catch((error: unknown) => {
    throw failureOf(error, base, {});
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, answer);
  return answer as Stored;
}

function isBelow(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/**
 * Makes a file an object: in place if it is in files_root, otherwise by uploading it.
 * @param path as typed; a path that does not exist is looked up in files_root
 * @throws SvcError `not_found` if it cannot be read, and other errors of the daemon
 */
export async function addFile(context: CliContext, aid: string, path: string, name?: string): Promise<Stored> {
  const file = resolve(path);
  const { files_root: root } = await context.client.status();
  if (existsSync(file) && (root === '' || !isBelow(root, file)))
    return await uploadFile(context, aid, file, name ?? basename(file));
  const named = existsSync(file) ? file : path;
  return await context.client.objectPut({ aid, path: named, ...(name === undefined ? {} : { name }) });
}
