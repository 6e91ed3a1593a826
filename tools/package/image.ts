/**
 * Writes the container image as one file for `docker load`, `podman load` and `skopeo`: an OCI image layout with the
 * `manifest.json` for older Docker versions. Needs none of these programs.
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { archive, type Entry } from './archive.ts';
import { baseEntries, IMAGE_DATA, IMAGE_USER } from './base.ts';

const NANOSECONDS = 1_000_000_000;
/** OCI names of Node's architectures. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly content: Buffer;
}

function sha256(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

function blob(kind: string, content: Buffer): Blob {
  const mediaType = `application/vnd.oci.image.${kind}`;
  return { mediaType, digest: sha256(content), size: content.length, content };
}

function json(kind: string, value: unknown): Blob {
  return blob(kind, Buffer.from(JSON.stringify(value)));
}

/** Descriptor of a blob. */
function named({ mediaType, digest, size }: Blob, more: object = {}) {
  return { mediaType, digest, size, ...more };
}

function pathOf({ digest }: Blob): string {
  return `blobs/${digest.replace(':', '/')}`;
}

function svcdEntries(singleFile: string, licenses: string): readonly Entry[] {
  return [
    { path: 'usr', directory: true },
    { path: 'usr/bin', directory: true },
    { path: 'usr/bin/svc', mode: 0o755, content: readFileSync(singleFile) },
    { path: 'usr/bin/svcd', link: 'svc' },
    { path: 'usr/share', directory: true },
    { path: 'usr/share/doc', directory: true },
    { path: 'usr/share/doc/svcd', directory: true },
    { path: 'usr/share/doc/svcd/LICENSE', content: readFileSync('LICENSE') },
    { path: 'usr/share/doc/svcd/licenses.txt', content: Buffer.from(licenses) },
  ];
}

/** Runtime configuration of the image. */
function configuration(version: string, created: string) {
  return {
    User: `${IMAGE_USER}:${IMAGE_USER}`,
    ExposedPorts: { '4121/udp': {}, '4122/udp': {}, '443/tcp': {}, '4121/tcp': {} },
    Env: ['PATH=/usr/bin', `HOME=${IMAGE_DATA}`, `SVCD_DATA_DIR=${IMAGE_DATA}`],
    Entrypoint: ['/usr/bin/svcd'],
    WorkingDir: IMAGE_DATA,
    Volumes: { [IMAGE_DATA]: {} },
    StopSignal: 'SIGTERM',
    Labels: {
      'org.opencontainers.image.title': 'svcd',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'org.opencontainers.image.created': created,
    },
    // Not part of OCI, but Docker and Podman support it.
    Healthcheck: {
      Test: ['CMD', '/usr/bin/svc', '--quiet', 'status'],
      Interval: 60 * NANOSECONDS,
      Timeout: 10 * NANOSECONDS,
      StartPeriod: 20 * NANOSECONDS,
      Retries: 3,
    },
  };
}

export interface ImageOptions {
  /** Path of the existing single file. */
  readonly singleFile: string;
  /** Licenses of its content. */
  readonly licenses: string;
  readonly version: string;
  /** Timestamp of all files in the image. */
  readonly time: Date;
  /** Compression level of the layers, 1 to 9. */
  readonly compression: number;
}

/** Writes the image for this machine's processor. Run it in a checkout with a built dist/. */
export function writeImage(file: string, { singleFile, licenses, version, time, compression }: ImageOptions): void {
  const architecture = ARCHITECTURES[process.arch];
  if (process.platform !== 'linux' || architecture === undefined)
    throw new Error(`Images are built on Linux for amd64 or arm64. This is ${process.platform}-${process.arch}.`);
  const created = time.toISOString();
  const contents = [
    { by: 'the libraries that Node needs', entries: baseEntries() },
    { by: 'svcd', entries: svcdEntries(singleFile, licenses) },
  ].map(({ by, entries }) => ({ by, plain: archive(entries, time) }));
  const layers = contents.map(({ plain }) => blob('layer.v1.tar+gzip', gzipSync(plain, { level: compression })));
  const config = json('config.v1+json', {
    architecture,
    os: 'linux',
    created,
    config: configuration(version, created),
    rootfs: { type: 'layers', diff_ids: contents.map(({ plain }) => sha256(plain)) },
    history: contents.map(({ by }) => ({ created, created_by: by })),
  });
  const manifest = json('manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: named(config),
    layers: layers.map((layer) => named(layer)),
  });
  const annotations = {
    'io.containerd.image.name': `docker.io/library/svcd:${version}`,
    'org.opencontainers.image.ref.name': version,
  };
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [named(manifest, { platform: { os: 'linux', architecture }, annotations })],
  };
  const docker = [{ Config: pathOf(config), RepoTags: [`svcd:${version}`], Layers: layers.map(pathOf) }];
  const text = (path: string, value: unknown): Entry => ({ path, content: Buffer.from(JSON.stringify(value)) });
  const entries: Entry[] = [
    text('oci-layout', { imageLayoutVersion: '1.0.0' }),
    text('index.json', index),
    text('manifest.json', docker),
    { path: 'blobs', directory: true },
    { path: 'blobs/sha256', directory: true },
    ...[config, manifest, ...layers].map((one) => ({ path: pathOf(one), content: one.content })),
  ];
  writeFileSync(file, archive(entries, time));
}
