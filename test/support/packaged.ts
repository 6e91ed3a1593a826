/** The output of `npm run package`, and its image unpacked and run like a container engine does. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { extract } from 'tar';
import { TestDaemon } from './daemon.ts';
import { type Output, run, runOk } from './programs.ts';

/** Builds the single file and the image. @returns their folder */
export async function makePackages(directory: string): Promise<string> {
  const out = join(directory, 'out');
  await runOk(process.execPath, ['tools/package.ts', '--out', out, '--compression', '1']);
  return out;
}

interface Named {
  readonly digest: string;
  readonly size: number;
}

interface Configuration {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly [string, ...string[]];
  readonly Volumes: Readonly<Record<string, object>>;
  readonly Healthcheck: { readonly Test: readonly [string, ...string[]] };
}

/** Mounts what an engine mounts, switches to the user of the image, and runs the following command. */
const ENTER = `
mount --rbind /dev "$ROOT/dev" && mount --rbind /proc "$ROOT/proc" && mount --bind "$VOLUME" "$ROOT$AT" &&
exec unshare --user --map-user="$OWNER" --map-group="$OWNER" --root="$ROOT" --wd="$AT" "$@"
`;

/** Why this machine cannot run containers, or false. */
export async function cannotContain(): Promise<string | false> {
  const script =
    'mount --rbind /dev /dev && exec unshare --user --map-user=10001 --map-group=10001 --root=/ --wd=/ true';
  const { code } = await run('unshare', ['-Urm', 'sh', '-c', script]).catch(() => ({ code: 1 }));
  return code === 0 ? false : 'needs user namespaces (unshare of util-linux 2.38 or newer)';
}

export class Image {
  readonly config: Configuration;
  readonly #directory: string;
  readonly #root: string;

  private constructor(directory: string, root: string, config: Configuration) {
    this.#directory = directory;
    this.#root = root;
    this.config = config;
  }

  /** Reads an image file and unpacks its layers. Every size and hash in it must be correct. */
  static async open(directory: string, file: string): Promise<Image> {
    const [layout, root] = [mkdtempSync(join(directory, 'layout-')), mkdtempSync(join(directory, 'root-'))];
    await extract({ file, cwd: layout });
    const blob = ({ digest, size }: Named): Buffer => {
      const content = readFileSync(join(layout, 'blobs', ...digest.split(':')));
      assert.deepEqual([hashOf(content), content.length], [digest, size]);
      return content;
    };
    const { manifests }: { manifests: [Named] } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
    const manifest: { config: Named; layers: Named[] } = JSON.parse(blob(manifests[0]).toString());
    const { config, rootfs }: { config: Configuration; rootfs: { diff_ids: string[] } } = JSON.parse(
      blob(manifest.config).toString(),
    );
    assert.deepEqual(
      manifest.layers.map((layer) => hashOf(gunzipSync(blob(layer)))),
      rootfs.diff_ids,
    );
    const [docker]: [{ Config: string; Layers: string[] }] = JSON.parse(
      readFileSync(join(layout, 'manifest.json'), 'utf8'),
    );
    assert.deepEqual(
      [docker.Config, ...docker.Layers],
      [manifest.config, ...manifest.layers].map(({ digest }) => `blobs/${digest.replace(':', '/')}`),
    );
    for (const path of docker.Layers) await extract({ file: join(layout, path), cwd: root, preserveOwner: false });
    for (const name of ['dev', 'proc']) mkdirSync(join(root, name));
    return new Image(directory, root, config);
  }

  /** A new data volume. */
  volume(): string {
    return mkdtempSync(join(this.#directory, 'volume-'));
  }

  /** Starts a container with a volume, in the network of this machine. */
  start(volume: string, bootstrap: readonly string[] = []): Promise<TestDaemon> {
    const [program, ...args] = this.#command(this.config.Entrypoint);
    return TestDaemon.start({
      command: [program, ...args],
      env: this.#environment(volume),
      dataDir: this.#data,
      bootstrap,
    });
  }

  /** Runs a program in a container with this volume, like `docker exec`. */
  exec(volume: string, words: readonly string[]): Promise<Output> {
    const [program, ...args] = this.#command(words);
    return run(program, args, { env: this.#environment(volume) });
  }

  get #data(): string {
    return Object.keys(this.config.Volumes)[0] ?? '';
  }

  #command(words: readonly string[]): readonly [string, ...string[]] {
    return ['unshare', '-Urm', 'sh', '-c', ENTER, 'sh', ...words];
  }

  #environment(volume: string): Record<string, string> {
    const named = Object.fromEntries(this.config.Env.map((line) => line.split('=', 2)));
    const owner = this.config.User.split(':')[0] ?? '';
    return { XDG_CACHE_HOME: '', ...named, ROOT: this.#root, VOLUME: volume, AT: this.#data, OWNER: owner };
  }
}

function hashOf(content: Uint8Array): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
