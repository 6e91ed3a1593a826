/** Machines in networks that allow little. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Internet } from '../internet.ts';
import type { Machine } from '../namespaces.ts';
import { natRules } from '../nat.ts';
import { Proxy } from './proxy.ts';
import {
  idleCut,
  loggedIn,
  NARROW_MTU,
  NARROW_PATH,
  NAT64_DEVICE,
  NAT64_INNER,
  NAT64_NETWORK,
  NO_QUIC,
  NO_UDP,
  PORTAL,
  proxyOnly,
  shortFlows,
  WEB_ONLY,
} from './rules.ts';

const NETWORK = '203.0.113';
const PROXY_PORT = 3128;
/** Ports to which ordinary proxies connect. */
const HTTPS_ONLY = [443];
const USER = 'lab';
/** Characters that a URL must encode. */
const PASSWORD = 'p@ss:w/rd';

/**
 * - `udp-blocked`: TCP passes, UDP does not.
 * - `tcp-443-only`: only TCP to ports 80 and 443 leaves.
 * - `connect-proxy`: nothing leaves, except port 443 through an HTTP proxy.
 * - `proxy-password`, `proxy-password-rotating`: the proxy requires a password, which may change.
 * - `inspected`: the proxy also ends TLS, with certificates of a local authority.
 * - `quic-dropped`: UDP passes, but no QUIC connection begins.
 * - `five-tuple`: each UDP flow is blocked permanently after some time.
 * - `ipv6-nat64`: only IPv6, and IPv4 hosts through a NAT64.
 * - `ipv6-only`: only IPv6.
 * - `mtu-1200`: larger packets are lost silently.
 * - `idle-cut`: TCP passes, UDP does not, and idle connections are forgotten.
 * - `portal`: nothing leaves until a login.
 */
export type LimitKind =
  | 'udp-blocked'
  | 'tcp-443-only'
  | 'connect-proxy'
  | 'proxy-password'
  | 'proxy-password-rotating'
  | 'inspected'
  | 'quic-dropped'
  | 'five-tuple'
  | 'ipv6-nat64'
  | 'ipv6-only'
  | 'mtu-1200'
  | 'idle-cut'
  | 'portal';

interface LimitOptions {
  /** How long flows live, connections may be idle, and passwords are valid, seconds. */
  readonly seconds?: number;
}

/** A machine in such a network. */
export interface LimitedMachine {
  readonly machine: Machine;
  /** Environment that its user sets for the network. */
  readonly env: Readonly<Record<string, string>>;
  /** Null in networks without a proxy. */
  readonly proxy: Proxy | null;
  /** Logs in to a captive portal. */
  readonly logIn: () => Promise<void>;
  /** Removes what the network gave to its users. The machine itself stops with the lab. */
  readonly leave: () => void;
}

function limited(machine: Machine, options: Partial<LimitedMachine> = {}): LimitedMachine {
  return { machine, env: {}, proxy: null, logIn: async () => {}, leave: () => {}, ...options };
}

const RULES: Partial<Record<LimitKind, (seconds: number) => string>> = {
  'udp-blocked': () => NO_UDP,
  'tcp-443-only': () => WEB_ONLY,
  'quic-dropped': () => NO_QUIC,
  'five-tuple': shortFlows,
  'idle-cut': idleCut,
  'mtu-1200': () => NARROW_PATH,
  portal: () => PORTAL,
};

/** Starts a local module on a machine and waits for its first message. */
async function service(machine: Machine, module: URL): Promise<ChildProcess> {
  const child = machine.fork(fileURLToPath(module));
  const ended = once(child, 'exit').then(() => Promise.reject(new Error(`${module.pathname} ended`)));
  await Promise.race([once(child, 'message'), ended]);
  return child;
}

/** A directory for what the network gives to its users. */
function directory(): { readonly path: string; readonly leave: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'svcd-network-'));
  return { path, leave: () => rmSync(path, { recursive: true, force: true }) };
}

async function behindProxy(
  internet: Internet,
  name: string,
  kind: LimitKind,
  seconds: number,
): Promise<LimitedMachine> {
  const { host, router, net } = await internet.behindBareRouter(name, NETWORK);
  await router.set('net/ipv4/ip_forward', 0);
  await router.nft(proxyOnly(PROXY_PORT));
  const place = `${net}.1:${PROXY_PORT}`;
  const settings = { port: PROXY_PORT, ports: HTTPS_ONLY };
  if (kind === 'connect-proxy') {
    const proxy = await Proxy.start(router, settings);
    return limited(host, { proxy, env: { HTTPS_PROXY: `http://${place}` } });
  }
  if (kind === 'proxy-password') {
    const proxy = await Proxy.start(router, { ...settings, credentials: `${USER}:${PASSWORD}` });
    const credentials = `${USER}:${encodeURIComponent(PASSWORD)}`;
    return limited(host, { proxy, env: { HTTPS_PROXY: `http://${credentials}@${place}` } });
  }
  const { path, leave } = directory();
  if (kind === 'inspected') {
    const proxy = await Proxy.start(router, { ...settings, inspects: true });
    const file = join(path, 'authority.pem');
    writeFileSync(file, (await proxy.report()).authority);
    return limited(host, { proxy, leave, env: { HTTPS_PROXY: `http://${place}`, SVCD_TLS_CA: file } });
  }
  const file = join(path, 'credentials');
  let changes = 0;
  const next = (): string => {
    const credentials = `${USER}:${PASSWORD}${changes++}`;
    writeFileSync(file, credentials);
    return credentials;
  };
  const proxy = await Proxy.start(router, { ...settings, credentials: next() });
  const timer = setInterval(() => void proxy.setCredentials(next()).catch(() => {}), seconds * 1000);
  const env = { HTTPS_PROXY: `http://${place}`, SVCD_PROXY_COMMAND: `cat ${file}` };
  return limited(host, {
    proxy,
    env,
    leave: () => {
      clearInterval(timer);
      leave();
    },
  });
}

async function behindIpv6(internet: Internet, name: string, hasNat64: boolean): Promise<LimitedMachine> {
  const { host, router } = await internet.behindIpv6Router(name);
  if (hasNat64) {
    await service(router, new URL('nat64-process.ts', import.meta.url));
    await router.ip([
      // An IPv6 packet is 20 bytes longer than the same in IPv4.
      `link set ${NAT64_DEVICE} mtu 1480 up`,
      `route add ${NAT64_NETWORK}/96 dev ${NAT64_DEVICE}`,
      `route add ${NAT64_INNER} dev ${NAT64_DEVICE}`,
    ]);
    await router.set('net/ipv4/ip_forward', 1);
    await router.nft(natRules('cone', NAT64_INNER));
  }
  return limited(host);
}

/** A machine in a network that allows little. The machine itself is like any other one. */
export async function behindLimits(
  internet: Internet,
  name: string,
  kind: LimitKind,
  { seconds = 30 }: LimitOptions = {},
): Promise<LimitedMachine> {
  const rules = RULES[kind];
  if (rules === undefined) {
    if (kind === 'ipv6-only' || kind === 'ipv6-nat64') return await behindIpv6(internet, name, kind === 'ipv6-nat64');
    return await behindProxy(internet, name, kind, seconds);
  }
  const { host, router, net } = await internet.behindBareRouter(name, NETWORK);
  await router.nft(natRules('cone', `${net}.2`));
  await router.nft(rules(seconds));
  if (kind === 'mtu-1200') {
    await router.ip([`link set lan0 mtu ${NARROW_MTU}`]);
    // Otherwise the path would pass packets that the kernel has not divided yet.
    await host.ip(['link set wan0 gso_max_segs 1']);
  }
  if (kind !== 'portal') return limited(host);
  await service(router, new URL('portal-process.ts', import.meta.url));
  return limited(host, { logIn: () => router.nft(loggedIn(`${net}.2`)) });
}
