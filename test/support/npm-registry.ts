/** An npm registry on loopback: packuments, tarballs, and signatures with its own key. */
import { createHash, createSign, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { type ReleaseProof, releaseMessage, type SignedRelease } from '../../src/capabilities/update/release-keys.ts';
import { toHex } from '../../src/foundation/bytes.ts';
import type { Signer } from '../../src/foundation/identity/ed25519.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { fetchTarballs, type Pinned, packageName, productionPackages, tarballName } from './package.ts';

/** A version of a package in the packument. `dist` is computed from the tarball. */
export interface Release {
  readonly name: string;
  readonly version: string;
  /** Further members of the manifest. */
  readonly manifest?: object;
  readonly tarball: Buffer;
  /** A wrong value for the packument. */
  readonly integrity?: string;
  readonly tarballUrl?: string;
  /** The signed text instead of `name@version:integrity`. Null: no signature. */
  readonly signedText?: string | null;
  /** The member `svcd` of the version, instead of a signature with the test release key. */
  readonly proof?: unknown;
}

/** A signing key in the format of `/-/npm/v1/keys`. */
export class SigningKey {
  readonly #pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  readonly key = this.#pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  readonly keyid = `SHA256:${createHash('sha256').update(this.key).digest('base64')}`;
  readonly keytype = 'ecdsa-sha2-nistp256';
  readonly scheme = 'ecdsa-sha2-nistp256';
  expires: string | null = null;

  sign(text: string): { keyid: string; sig: string } {
    return { keyid: this.keyid, sig: createSign('SHA256').update(text).sign(this.#pair.privateKey, 'base64') };
  }

  view(): object {
    const { expires, keyid, keytype, scheme, key } = this;
    return { expires, keyid, keytype, scheme, key };
  }
}

/** The release key of the tests. Builds that pin it accept its signatures. */
export const TEST_RELEASE_KEY = KeyPair.fromSeed(new Uint8Array(32).fill(16));
export const TEST_RELEASE_KEYS: readonly string[] = [toHex(TEST_RELEASE_KEY.publicKey)];

/** The proof of a release, signed with a release key. */
export function proofOf(release: SignedRelease, key: Signer = TEST_RELEASE_KEY): ReleaseProof {
  const signature = Buffer.from(key.sign(releaseMessage(release))).toString('base64');
  return { signatures: [{ key: toHex(key.publicKey), signature }] };
}

export function sha512(content: Buffer): string {
  return `sha512-${createHash('sha512').update(content).digest('base64')}`;
}

export class NpmRegistry {
  readonly key = new SigningKey();
  /** The keys in `/-/npm/v1/keys`. Null: the registry does not sign. */
  keys: SigningKey[] | null = [this.key];
  /** Requested paths. */
  readonly requests: string[] = [];
  /** Handles a request instead of the registry if it returns true. */
  intercept: (path: string, response: ServerResponse) => boolean = () => false;
  readonly #server: Server;
  readonly #tarballs = new Map<string, () => Buffer>();
  readonly #packages = new Map<string, { latest: string; versions: Record<string, object> }>();

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<NpmRegistry> {
    const registry = new NpmRegistry();
    registry.#server.listen(0, '127.0.0.1');
    await once(registry.#server, 'listening');
    return registry;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the registry does not listen');
    return `http://127.0.0.1:${address.port}/`;
  }

  /** Publishes a version as the latest one. */
  publish({ name, version, manifest, tarball, integrity, tarballUrl, signedText, ...more }: Release): void {
    const path = this.#keep(name, version, () => tarball);
    const stated = integrity ?? sha512(tarball);
    const signatures = signedText === null ? [] : [this.key.sign(signedText ?? `${name}@${version}:${stated}`)];
    const dist = { tarball: tarballUrl ?? this.url + path, integrity: stated, signatures };
    const svcd = 'proof' in more ? more.proof : proofOf({ name, version, integrity: stated });
    this.#add(name, version, { ...manifest, name, version, dist, svcd });
  }

  /** Publishes every dependency of svcd, with the tarballs named in the lock file. */
  async publishDependencies(directory: string): Promise<void> {
    const packages = new Map<string, Pinned>();
    for (const [path, { version, ...entry }] of productionPackages()) {
      const name = packageName(path);
      const { integrity = '' } = entry;
      if (packages.has(`${name}@${version}`)) continue;
      packages.set(`${name}@${version}`, { name, version, integrity });
      const file = join(directory, tarballName(name, version));
      const url = this.url + this.#keep(name, version, () => readFileSync(file));
      this.#add(name, version, { ...entry, name, version, dist: { tarball: url, integrity } });
    }
    await fetchTarballs(directory, [...packages.values()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #keep(name: string, version: string, content: () => Buffer): string {
    const path = `tarballs/${tarballName(name, version)}`;
    this.#tarballs.set(`/${path}`, content);
    return path;
  }

  #add(name: string, version: string, manifest: object): void {
    const versions = this.#packages.get(name)?.versions ?? {};
    this.#packages.set(name, { latest: version, versions: { ...versions, [version]: manifest } });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url ?? '/');
    this.requests.push(path);
    if (this.intercept(path, response)) return;
    const found = this.#packages.get(path.slice(1));
    const tarball = this.#tarballs.get(path);
    if (tarball !== undefined) return void response.end(tarball());
    const keys = path === '/-/npm/v1/keys' ? this.keys : null;
    const body =
      found === undefined
        ? keys && { keys: keys.map((key) => key.view()) }
        : { name: path.slice(1), 'dist-tags': { latest: found.latest }, versions: found.versions };
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { error: 'Not found' }));
  }
}
