/** Unpacks the tarball of a release after its signature was verified. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { SvcError } from '../../foundation/errors.ts';
import { memberOf } from '../../foundation/json.ts';

/** Largest unpacked release, in bytes. */
const MAX_UNPACKED_BYTES = 256 * 1024 * 1024;

/** Files and directories of one release. */
const MAX_RELEASE_FILES = 20_000;

/** Path of the lock file inside a release. npm does not publish a lock file under its usual name. */
export const PACKAGED_LOCK_FILE = join('dist', 'package-lock.json');

const Manifest = Type.Object({ name: Type.String(), version: Type.String() });
const Names = Type.Optional(Type.Array(Type.String()));
const Lock = Type.Object({
  packages: Type.Record(
    Type.String(),
    Type.Object({
      integrity: Type.Optional(Type.String()),
      dev: Type.Optional(Type.Boolean()),
      os: Names,
      cpu: Names,
      libc: Names,
    }),
  ),
});
type Entry = Static<typeof Lock>['packages'][string];

/** The platform in npm's terms. */
export interface Platform {
  readonly os: string;
  readonly cpu: string;
  /** Empty if it does not apply. */
  readonly libc: string;
}

/** The error for a rejected release. */
export function untrusted(problem: string): SvcError {
  return new SvcError('protocol_error', { message: `The release is not trusted: ${problem}.` });
}

/** @throws SvcError `protocol_error` if the content does not match `integrity` (`sha512-…`) */
export function checkIntegrity(content: Buffer, integrity: string): void {
  const wanted = Buffer.from(integrity.replace(/^sha512-/, ''), 'base64');
  const given = createHash('sha512').update(content).digest();
  if (wanted.length !== given.length || !timingSafeEqual(wanted, given))
    throw untrusted('its tarball does not match the signature');
}

/**
 * Unpacks a gzipped tarball into a new directory. Only plain files and directories inside it are accepted.
 * @throws SvcError `protocol_error`, and system errors of the disk
 */
export async function unpack(tarball: Buffer, directory: string): Promise<void> {
  // Imported here, because it would delay every start by three milliseconds.
  const { gunzip } = await import('node:zlib');
  let content: Buffer;
  try {
    content = await promisify(gunzip)(tarball, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (error) {
    throw new SvcError('protocol_error', { message: 'Cannot unpack the tarball of the release.', cause: error });
  }
  mkdirSync(directory);
  // Imported here, because it would use 13 MiB in every daemon that never updates itself.
  const { extract } = await import('tar');
  let entries = 0;
  const filter = (_path: string, entry: object): boolean =>
    ++entries <= MAX_RELEASE_FILES && 'type' in entry && (entry.type === 'File' || entry.type === 'Directory');
  try {
    const target = extract({ cwd: directory, strip: 1, strict: true, preserveOwner: false, filter });
    await pipeline(Readable.from([content]), target);
  } catch (error) {
    if (memberOf(error, 'syscall') !== undefined) throw error;
    throw new SvcError('protocol_error', { message: 'Cannot unpack the tarball of the release.', cause: error });
  }
  if (entries > MAX_RELEASE_FILES) throw untrusted(`it has more than ${MAX_RELEASE_FILES} files`);
}

function readJson(file: string, what: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    throw untrusted(`it has no ${what}`);
  }
}

/** @throws SvcError `protocol_error` if the unpacked package has another name or version */
export function checkManifest(directory: string, name: string, version: string): void {
  const manifest = readJson(join(directory, 'package.json'), 'manifest');
  if (!Compile(Manifest).Check(manifest) || manifest.name !== name || manifest.version !== version)
    throw untrusted('its manifest has another name or version');
}

function fits(allowed: readonly string[] | undefined, own: string): boolean {
  return allowed === undefined || allowed.includes(own);
}

function isInstalledOn({ os, cpu, libc }: Platform, entry: Entry): boolean {
  return entry.dev !== true && fits(entry.os, os) && fits(entry.cpu, cpu) && (libc === '' || fits(entry.libc, libc));
}

/**
 * Checks that the lock file of a release has an integrity hash for every package to install on this platform. The
 * signature of the release then covers the whole tree.
 * @returns the text of the lock file
 * @throws SvcError `protocol_error`
 */
export function readLock(directory: string, platform: Platform): string {
  const file = join(directory, PACKAGED_LOCK_FILE);
  const lock = readJson(file, 'lock');
  if (!Compile(Lock).Check(lock)) throw untrusted('its lock file is invalid');
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path !== '' && isInstalledOn(platform, entry) && entry.integrity?.startsWith('sha512-') !== true)
      throw untrusted(`its lock file has no integrity hash for ${path.replace(/^node_modules\//, '')}`);
  }
  return readFileSync(file, 'utf8');
}
