/** svcd as a user has it: installed from a tarball, run as a system service, with its own registry. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, extract } from 'tar';
import { eventually } from './eventually.ts';
import { NpmRegistry, type Release, TEST_RELEASE_KEYS } from './npm-registry.ts';
import { installGlobally, packSvcd, pathWith } from './package.ts';
import { type Output, quietPort, run } from './programs.ts';

export interface UpdateView {
  readonly current_version: string;
  readonly latest_version: string | null;
  readonly update_available: boolean;
  readonly state: string;
  readonly last_error?: string;
  readonly managed: boolean;
  readonly last_check_at: string | null;
}

export class ServiceWorld {
  readonly registry: NpmRegistry;
  readonly dataDir: string;
  readonly #directory: string;
  readonly #bin: string;
  readonly #port: number;
  readonly #output: string[] = [];
  #service: ChildProcess | null = null;

  private constructor(directory: string, registry: NpmRegistry, bin: string, port: number) {
    this.#directory = directory;
    this.registry = registry;
    this.#bin = bin;
    this.#port = port;
    this.dataDir = join(directory, 'data');
  }

  /** Packs and installs this checkout. */
  static async start(directory: string): Promise<ServiceWorld> {
    const tarball = await packSvcd(directory, TEST_RELEASE_KEYS);
    mkdirSync(join(directory, 'release'));
    await extract({ file: tarball, cwd: join(directory, 'release') });
    const registry = await NpmRegistry.start();
    mkdirSync(join(directory, 'tarballs'));
    await registry.publishDependencies(join(directory, 'tarballs'));
    const bin = await installGlobally(directory, tarball, registry.url);
    const world = new ServiceWorld(directory, registry, bin, await quietPort());
    mkdirSync(world.dataDir, { mode: 0o700 });
    const config = `api_addr = "127.0.0.1:${world.#port}"\nlisten_addr = "127.0.0.1:0"\nmdns = false\n`;
    writeFileSync(join(world.dataDir, 'config.toml'), config, { mode: 0o600 });
    return world;
  }

  /** The output of the service. */
  get output(): string {
    return this.#output.join('');
  }

  get environment(): NodeJS.ProcessEnv {
    return {
      PATH: pathWith(process.execPath),
      SVCD_DATA_DIR: this.dataDir,
      npm_config_registry: this.registry.url,
      npm_config_userconfig: join(this.#directory, 'no-npmrc'),
    };
  }

  /** This program with another version and a changed folder. */
  release(version: string, change: (directory: string) => void = () => {}): Release {
    const [folder, file] = [join(this.#directory, `of-${version}`), join(this.#directory, `svcd-${version}.tgz`)];
    const root = join(folder, 'package');
    cpSync(join(this.#directory, 'release', 'package'), root, { recursive: true });
    const manifest = { ...JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')), version };
    writeFileSync(join(root, 'package.json'), JSON.stringify(manifest));
    change(root);
    create({ file, gzip: true, cwd: folder, sync: true }, ['package']);
    return { name: 'svcd', version, manifest: { engines: manifest.engines }, tarball: readFileSync(file) };
  }

  /** Starts the service, or only the daemon, and waits until it is ready. Stops the previous one. */
  async run(...args: readonly string[]): Promise<void> {
    await this.stop();
    const child = spawn(join(this.#bin, 'svcd'), ['--data-dir', this.dataDir, ...args], {
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#service = child;
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => this.#output.push(text));
    await eventually(`svcd serves:\n${this.output}`, () => this.status().catch(() => false as const));
  }

  /** Stops it. @returns its exit code */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    const child = this.#service;
    this.#service = null;
    if (child === null) return null;
    if (child.exitCode === null && child.signalCode === null) {
      const closed = once(child, 'close');
      child.kill(signal);
      await closed;
    }
    return child.exitCode;
  }

  svc(...args: readonly string[]): Promise<Output> {
    return run(join(this.#bin, 'svc'), args, { env: this.environment });
  }

  svcd(...args: readonly string[]): Promise<Output> {
    return run(join(this.#bin, 'svcd'), args, { env: this.environment });
  }

  async call(method: string, path: string): Promise<{ status: number; body: unknown }> {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, { method, headers });
    return { status: response.status, body: await response.json() };
  }

  async status(): Promise<UpdateView> {
    return (await this.call('GET', '/update/status')).body as UpdateView;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.registry[Symbol.asyncDispose]();
  }
}
