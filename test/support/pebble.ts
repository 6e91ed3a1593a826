/** Pebble, the test server of Let's Encrypt, built from the Go module proxy. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { eventually } from './eventually.ts';
import { quietPort } from './programs.ts';
import { SELF_SIGNED } from './self-signed.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const MODULE = 'github.com/letsencrypt/pebble/v2/cmd';
const VERSION = 'v2.8.0';
const PROGRAMS = ['pebble', 'pebble-challtestsrv'] as const;
const FOLDER = new URL('../../node_modules/.cache/pebble/', import.meta.url).pathname;

const GO = 'go';

/** For the `skip` option of a test: false if Go is installed. */
export function needsGo(): string | false {
  return spawnSync(GO, ['version']).status === 0 ? false : 'needs go: apt-get install golang-go';
}

async function program(name: (typeof PROGRAMS)[number]): Promise<string> {
  const path = join(FOLDER, name);
  if (existsSync(path)) return path;
  mkdirSync(FOLDER, { recursive: true });
  const env = { ...process.env, GOBIN: FOLDER };
  await promisify(execFile)(GO, ['install', `${MODULE}/${name}@${VERSION}`], { env });
  return path;
}

export interface Pebble {
  /** The URL of its directory. */
  readonly directory: string;
  /** The port that it connects to for TLS-ALPN-01. */
  readonly tlsPort: number;
}

/**
 * Starts the server. All names lead to 127.0.0.1. Its own certificate is that of `SELF_SIGNED`.
 * @param tlsPort the port of the entry
 * @param lifetimeS lifetime of certificates, seconds
 */
export async function startPebble(t: TestContext, tlsPort: number, lifetimeS = 7_776_000): Promise<Pebble> {
  const folder = temporaryDirectory(t);
  const [server, names] = await Promise.all(PROGRAMS.map(program));
  const [port, management, dns, control] = [await quietPort(), await quietPort(), await quietPort(), await quietPort()];
  const [certificate, privateKey] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  writeFileSync(certificate, SELF_SIGNED.cert);
  writeFileSync(privateKey, SELF_SIGNED.key);
  const config = join(folder, 'pebble.json');
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate,
    privateKey,
    httpPort: 1,
    tlsPort,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
    retryAfter: { authz: 1, order: 1 },
    profiles: { default: { description: 'default', validityPeriod: lifetimeS } },
  };
  writeFileSync(config, JSON.stringify({ pebble }));
  const run = (path: string | undefined, args: readonly string[]): void => {
    const child: ChildProcess = spawn(path ?? '', args, {
      env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20' },
      stdio: 'ignore',
    });
    t.after(() => child.kill());
  };
  const off = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', ''];
  const forNames = ['-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-dns01', `127.0.0.1:${dns}`];
  run(names, [...forNames, '-management', `127.0.0.1:${control}`, ...off]);
  run(server, ['-config', config, '-dnsserver', `127.0.0.1:${dns}`]);
  const directory = `https://localhost:${port}/dir`;
  for (const url of [directory, `http://127.0.0.1:${control}/`])
    await eventually(`${url} answers`, async () => (await fetch(url).catch(() => null)) !== null);
  return { directory, tlsPort };
}
