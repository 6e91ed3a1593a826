/** Looks up the newest release in the npm registry and verifies the signatures of the project and the registry. */
import semver from 'semver';
import { type Static, type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { hostOfUrl, isLoopbackHost } from '../../foundation/address.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { readJson } from '../../foundation/json.ts';
import { ReleaseProof, releaseProblem } from './release-keys.ts';
import { RegistryKeys, Signatures, signatureProblem } from './signature.ts';
import type { Release } from './types.ts';
import { untrusted } from './unpack.ts';

/** Largest packument: the registry's document about all versions, in bytes. */
const MAX_PACKUMENT_BYTES = 16 * 1024 * 1024;
/** Largest list of signing keys, in bytes. */
const MAX_KEYS_BYTES = 256 * 1024;
/** Largest tarball of a release, in bytes. */
const MAX_TARBALL_BYTES = 64 * 1024 * 1024;
/** Time limit for a metadata request, in milliseconds. */
const METADATA_TIMEOUT_MS = 30_000;
/** Time limit for a tarball download, in milliseconds. */
const TARBALL_TIMEOUT_MS = 5 * 60_000;

const INTEGRITY = /^sha512-[A-Za-z0-9+/]{86}==$/;

const Version = Type.Object({
  name: Type.String(),
  version: Type.String(),
  engines: Type.Optional(Type.Object({ node: Type.Optional(Type.String()) })),
  dist: Type.Object({
    tarball: Type.String(),
    integrity: Type.Optional(Type.String()),
    signatures: Type.Optional(Signatures),
  }),
  svcd: Type.Optional(Type.Unknown()),
});
const Packument = Type.Object({
  'dist-tags': Type.Object({ latest: Type.String() }),
  versions: Type.Record(Type.String(), Type.Unknown()),
  time: Type.Optional(Type.Record(Type.String(), Type.String())),
});

/** True if a version is an update of `current`: newer and not a pre-release. */
export function isUpdate(version: string, current: string): boolean {
  return semver.gt(version, current) && semver.prerelease(version) === null;
}

export interface ReleaseSourceOptions {
  /** Package name. */
  readonly name: string;
  /** The registry in npm's configuration. */
  readonly registry: (signal: AbortSignal) => Promise<URL>;
  /** Release keys of the project, in hex. */
  readonly releaseKeys: readonly string[];
  /** Unix milliseconds. */
  readonly now: () => number;
}

function malformed(what: string): SvcError {
  return new SvcError('protocol_error', { message: `The registry sent invalid data about ${what}.` });
}

/** Parses JSON and validates it against a schema. */
function parse<T extends TSchema>(schema: T, what: string, content: Buffer): Static<T> {
  const value = readJson(content.toString('utf8'));
  if (!Compile(schema).Check(value)) throw malformed(what);
  return value;
}

export class ReleaseSource {
  readonly #options: ReleaseSourceOptions;

  constructor(options: ReleaseSourceOptions) {
    this.#options = options;
  }

  /**
   * The latest version according to the registry. If it is newer than `current`, also the release with verified
   * signatures.
   * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `cancelled`, `config_invalid`
   */
  async latest(current: string, signal: AbortSignal): Promise<{ version: string; release: Release | null }> {
    const { name } = this.#options;
    const registry = await this.#registry(signal);
    const limits = { maxBytes: MAX_PACKUMENT_BYTES, timeoutMs: METADATA_TIMEOUT_MS, signal };
    const packument = await fetchBounded(new URL(name, registry), limits);
    if (packument === null)
      throw new SvcError('protocol_error', { message: `The registry at ${registry.host} does not have ${name}.` });
    const { 'dist-tags': tags, versions, time } = parse(Packument, name, packument);
    const latest = semver.valid(tags.latest);
    if (latest === null || latest !== tags.latest) throw malformed(name);
    if (!isUpdate(latest, current)) return { version: latest, release: null };
    const stated: unknown = Object.hasOwn(versions, latest) ? versions[latest] : undefined;
    const publishedAt = Date.parse(time?.[latest] ?? '') || this.#options.now();
    return { version: latest, release: await this.#verify(registry, latest, stated, publishedAt, signal) };
  }

  /**
   * Downloads the tarball of a release. The caller checks its integrity.
   * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `cancelled`
   */
  async tarball({ tarball, version }: Release, signal: AbortSignal): Promise<Buffer> {
    const limits = { maxBytes: MAX_TARBALL_BYTES, timeoutMs: TARBALL_TIMEOUT_MS, signal };
    const content = await fetchBounded(tarball, limits);
    if (content === null)
      throw new SvcError('protocol_error', { message: `The registry has no tarball of ${version}.` });
    return content;
  }

  /** The release that the registry lists, after all checks passed. */
  async #verify(
    registry: URL,
    latest: string,
    stated: unknown,
    publishedAt: number,
    signal: AbortSignal,
  ): Promise<Release> {
    const { name, releaseKeys } = this.#options;
    if (!Compile(Version).Check(stated) || stated.name !== name || stated.version !== latest) throw malformed(latest);
    const { dist, engines, svcd } = stated;
    if (dist.integrity === undefined || !INTEGRITY.test(dist.integrity))
      throw untrusted(`${name}@${latest} has no sha512 integrity`);
    const proof = Compile(ReleaseProof).Check(svcd) ? svcd : { signatures: [] };
    const unproven = releaseProblem({ name, version: latest, integrity: dist.integrity }, proof, releaseKeys);
    if (unproven !== null) throw untrusted(unproven);
    const keys = await this.#keys(registry, signal);
    const signed = { name, version: latest, integrity: dist.integrity, signatures: dist.signatures ?? [], publishedAt };
    const problem = signatureProblem(signed, keys);
    if (problem !== null) throw untrusted(problem);
    const tarball = URL.canParse(dist.tarball) ? new URL(dist.tarball) : null;
    if (tarball === null || tarball.origin !== registry.origin)
      throw untrusted(`the tarball of ${name}@${latest} is outside the registry`);
    return { version: latest, tarball, integrity: dist.integrity, node: engines?.node ?? '*' };
  }

  async #registry(signal: AbortSignal): Promise<URL> {
    const registry = await this.#options.registry(signal);
    if (!isSafeUrl(registry))
      throw new SvcError('config_invalid', {
        message: `npm is configured for a registry without https (${registry.host}). Configure a registry with https.`,
      });
    // A mirror may have a path. Without the trailing slash, relative URLs would replace its last segment.
    return registry.pathname.endsWith('/') ? registry : new URL(`${registry.href}/`);
  }

  async #keys(registry: URL, signal: AbortSignal): Promise<Static<typeof RegistryKeys>['keys']> {
    const limits = { maxBytes: MAX_KEYS_BYTES, timeoutMs: METADATA_TIMEOUT_MS, signal };
    const listed = await fetchBounded(new URL('-/npm/v1/keys', registry), limits);
    return listed === null ? [] : parse(RegistryKeys, 'its signing keys', listed).keys;
  }
}

// Fetches from a registry with limits on time and size, and without redirects.

interface FetchLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Cancels the request. */
  readonly signal: AbortSignal;
}

/** True if the response cannot be changed on its path: https, or the loopback interface. */
function isSafeUrl(url: URL): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(hostOfUrl(url)));
}

/** Short reason for a network failure. */
function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return codeOf(cause, cause instanceof Error ? cause.message : 'unknown');
}

function failure(url: URL, error: unknown, signal: AbortSignal): SvcError {
  if (error instanceof SvcError) return error;
  if (signal.aborted) return new SvcError('cancelled', { cause: error });
  if (error instanceof Error && error.name === 'TimeoutError')
    return new SvcError('timeout', { message: `The registry at ${url.host} did not respond in time.`, cause: error });
  return new SvcError('connect_failed', {
    message: `Cannot reach the registry at ${url.host} (${reason(error)}).`,
    cause: error,
  });
}

async function readBody(url: URL, body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes)
      throw new SvcError('too_large', {
        message: `The registry sent more than ${maxBytes} bytes for ${url.pathname}.`,
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * The body at a URL; null if the registry responds with 404.
 * @throws SvcError `connect_failed`, `timeout`, `too_large`, `protocol_error`, `cancelled`
 */
async function fetchBounded(url: URL, { maxBytes, timeoutMs, signal }: FetchLimits): Promise<Buffer | null> {
  try {
    // A redirect could lead to a service on this machine or in its network. Registries do not redirect.
    const response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (response.status === 200 && response.body !== null) return await readBody(url, response.body, maxBytes);
    await response.body?.cancel();
    if (response.status === 404) return null;
    throw new SvcError('protocol_error', {
      message: `The registry at ${url.host} responded with status ${response.status}.`,
    });
  } catch (error) {
    throw failure(url, error, signal);
  }
}
