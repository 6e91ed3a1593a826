/**
 * A small Internet of namespaces: a bridge with all public addresses, public machines, and machines behind routers of
 * every kind. Needs `unshare` and `nsenter` (util-linux), `ip` (iproute2) and `nft` (nftables).
 */
import { existsSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { formatAddress } from '../../../src/foundation/address.ts';
import { Machine } from './namespaces.ts';
import { hairpinRules, IPV6_FIREWALL, type NatKind, natRules } from './nat.ts';
import { type Slowness, SlowSwitch } from './slow-switch.ts';

/** Public networks, from the ranges for documentation. */
const PUBLIC = '203.0.113';
/** Two more networks, each in another /16. */
export const OTHER_PUBLIC = ['198.51.100', '192.0.2'] as const;
const PUBLIC_V6 = '2001:db8:0:1';

/** True if IPv4 rules also apply to bridged frames. Absent if the system does not support it. */
const BRIDGE_RULES = 'net/bridge/bridge-nf-call-iptables';

/** A counter of unsolicited packets and their senders. */
export interface Arrivals {
  readonly packets: number;
  readonly bytes: number;
}

interface InternetOptions {
  /** Default: no delay. Needs `/dev/net/tun` and a Node with `node:ffi`. */
  readonly slowness?: Slowness;
}

export class Internet implements AsyncDisposable {
  readonly #backbone: Machine;
  readonly #machines: Machine[];
  /** The central switch. Null if the bridge is used. */
  readonly slow: SlowSwitch | null;
  /** Public networks that the backbone routes. */
  readonly #networks = new Set([PUBLIC]);
  /** Numbers of routers and machines, for addresses and interface names. */
  #last = 0;

  private constructor(backbone: Machine, slow: SlowSwitch | null) {
    this.#backbone = backbone;
    this.slow = slow;
    this.#machines = [backbone];
  }

  /** Null, and the test is skipped, if the machine lacks a program or does not allow namespaces. */
  static async start(t: TestContext): Promise<Internet | null> {
    try {
      const internet = await Internet.open();
      t.after(() => internet[Symbol.asyncDispose]());
      return internet;
    } catch {
      t.skip('needs network namespaces (unshare, nsenter), iproute2 and nftables');
      return null;
    }
  }

  /** Like `start`, outside of a test. Fails if the machine lacks something. */
  static async open({ slowness }: InternetOptions = {}): Promise<Internet> {
    const backbone = await Machine.start('backbone', null);
    try {
      await backbone.nft('table ip probe {\n}\n');
      await backbone.set('net/ipv6/conf/default/accept_dad', 0);
      await backbone.ip(['link set lo up']);
      const slow = slowness === undefined ? null : new SlowSwitch(backbone, slowness);
      if (slow === null) await backbone.ip(['link add br0 type bridge']);
      else {
        await slow.plug(backbone, 'br0');
        await slow.slow(backbone, { delayMs: 0, loss: 0 });
      }
      // Drops packets for unused addresses, like an Internet exchange.
      await backbone.ip([
        'link set br0 up',
        `addr add ${PUBLIC}.254/24 dev br0`,
        `addr add ${PUBLIC_V6}::fe/64 dev br0 nodad`,
      ]);
      await backbone.set('net/ipv6/conf/all/forwarding', 1);
      await backbone.set('net/ipv4/ip_forward', 1);
      // Disables ICMP redirects.
      for (const which of ['all', 'br0']) await backbone.set(`net/ipv4/conf/${which}/send_redirects`, 0);
      return new Internet(backbone, slow);
    } catch (error) {
      await backbone.stop();
      throw error;
    }
  }

  async #machine(name: string): Promise<Machine> {
    const machine = await Machine.start(name, this.#backbone);
    this.#machines.push(machine);
    // Makes IPv6 usable immediately, without a search for duplicate addresses.
    await machine.set('net/ipv6/conf/default/accept_dad', 0);
    await machine.ip(['link set lo up']);
    return machine;
  }

  /** Connects two machines with a cable. The names are its ends. */
  async #cable(a: Machine, endA: string, b: Machine, endB: string): Promise<void> {
    await this.#backbone.ip([`link add ${endA} netns ${a.pid} type veth peer name ${endB} netns ${b.pid}`]);
    await Promise.all([a.ip([`link set ${endA} up`]), b.ip([`link set ${endB} up`])]);
  }

  /** Connects a machine's `wan0` to the bridge, with public IPv4 addresses of one network. */
  async #connect(machine: Machine, hosts: readonly string[], network = PUBLIC): Promise<void> {
    if (!this.#networks.has(network)) {
      this.#networks.add(network);
      await this.#backbone.ip([`addr add ${network}.254/24 dev br0`]);
    }
    const port = `br-${++this.#last}`;
    if (this.slow === null) {
      await this.#cable(machine, 'wan0', this.#backbone, port);
      await this.#backbone.ip([`link set ${port} master br0`]);
    } else {
      await this.slow.plug(machine, 'wan0');
      await machine.ip(['link set wan0 up']);
    }
    await machine.ip([...hosts.map((host) => `addr add ${host}/24 dev wan0`), `route add default via ${network}.254`]);
  }

  /**
   * A machine with public addresses.
   * @param numbers last bytes of its addresses, IPv4 and IPv6
   * @param network its IPv4 network
   */
  async publicMachine(name: string, numbers: readonly number[], network: string = PUBLIC): Promise<Machine> {
    const machine = await this.#machine(name);
    const hosts = numbers.map((number) => `${network}.${number}`);
    await this.#connect(machine, hosts, network);
    await machine.ip([
      ...numbers.map((number) => `addr add ${PUBLIC_V6}::${number}/64 dev wan0 nodad`),
      `route add ::/0 via ${PUBLIC_V6}::fe`,
    ]);
    return machine;
  }

  /**
   * A machine behind one or several routers: the first is its own, the last one has the public address.
   * @param hasIpv6 true if it also has a public IPv6 address, behind a firewall in its only router
   */
  async behind(name: string, kinds: readonly NatKind[], hasIpv6 = false): Promise<Machine> {
    const host = await this.#machine(name);
    let inner = host;
    for (const [depth, kind] of kinds.entries()) {
      const net = `10.${++this.#last}.${depth}`;
      const router = await this.#machine(`${name}-router-${depth}`);
      await this.#cable(inner, 'wan0', router, 'lan0');
      await router.ip([`addr add ${net}.1/24 dev lan0`]);
      await inner.ip([`addr add ${net}.2/24 dev wan0`, `route add default via ${net}.1`]);
      await router.set('net/ipv4/ip_forward', 1);
      await router.nft(natRules(kind, `${net}.2`));
      inner = router;
    }
    await this.#connect(inner, [`${PUBLIC}.${100 + this.#last}`]);
    if (hasIpv6) await this.#firewalled(host, inner);
    return host;
  }

  /**
   * A machine behind a router without rules.
   * @param network where the external address of the router is
   */
  async behindBareRouter(
    name: string,
    network: string,
  ): Promise<{ readonly host: Machine; readonly router: Machine; readonly net: string; readonly outerHost: string }> {
    const net = `10.${++this.#last}.0`;
    const outerHost = `${network}.${100 + this.#last}`;
    const host = await this.#machine(name);
    const router = await this.#machine(`${name}-router-0`);
    await this.#cable(host, 'wan0', router, 'lan0');
    await router.ip([`addr add ${net}.1/24 dev lan0`]);
    await host.ip([`addr add ${net}.2/24 dev wan0`, `route add default via ${net}.1`]);
    await router.set('net/ipv4/ip_forward', 1);
    await this.#connect(router, [outerHost], network);
    return { host, router, net, outerHost };
  }

  /** A machine without IPv4, behind an IPv6 firewall. Its router also has a public IPv4 address. */
  async behindIpv6Router(name: string): Promise<{ readonly host: Machine; readonly router: Machine }> {
    const host = await this.#machine(name);
    const router = await this.#machine(`${name}-router-0`);
    await this.#cable(host, 'wan0', router, 'lan0');
    await this.#connect(router, [`${PUBLIC}.${100 + ++this.#last}`]);
    await this.#firewalled(host, router);
    return { host, router };
  }

  /** The router of a machine created by `behind`. */
  #routerOf(name: string): Machine {
    const router = this.#machines.find((machine) => machine.name === `${name}-router-0`);
    if (router === undefined) throw new Error(`${name} has no router`);
    return router;
  }

  /** Makes the router of a machine lose its NAT table, like a restart. */
  async forget(name: string): Promise<void> {
    await this.#routerOf(name).ip(['link set wan0 down', 'link set wan0 up', `route add default via ${PUBLIC}.254`]);
  }

  /** Gives the router of a machine another public address, as providers do. It loses its NAT table too. */
  async readdress(name: string): Promise<void> {
    const host = `${PUBLIC}.${100 + ++this.#last}`;
    await this.#routerOf(name).ip([
      'addr flush dev wan0',
      `addr add ${host}/24 dev wan0`,
      `route add default via ${PUBLIC}.254`,
    ]);
  }

  /**
   * The router of another network, for a machine that already has one.
   * @returns moves the machine there, which changes its addresses
   */
  async otherNetwork(host: Machine, name: string, kind: NatKind): Promise<() => Promise<void>> {
    const net = `10.${++this.#last}.0`;
    const router = await this.#machine(`${name}-router-0`);
    const cable = `wan${this.#last}`;
    await this.#cable(host, cable, router, 'lan0');
    await router.ip([`addr add ${net}.1/24 dev lan0`]);
    await router.set('net/ipv4/ip_forward', 1);
    await router.nft(natRules(kind, `${net}.2`));
    await this.#connect(router, [`${PUBLIC}.${100 + this.#last}`]);
    return async () => {
      const links = await host.run('ip', ['-o', 'link']);
      const cables = [...links.matchAll(/(wan\d+)@/g)].map(([, one]) => `addr flush dev ${one}`);
      await host.ip([...cables, `addr add ${net}.2/24 dev ${cable}`, `route add default via ${net}.1`]);
    };
  }

  /**
   * Machines on a LAN behind a router that keeps ports and does not hairpin.
   * @param apart number of machines, from the first, that cannot reach each other on the LAN, as in a guest WLAN
   */
  async lan(name: string, count: number, apart: number): Promise<readonly Machine[]> {
    const net = `10.${++this.#last}.0`;
    const router = await this.#machine(`${name}-router`);
    await router.ip(['link add lan0 type bridge', 'link set lan0 up', `addr add ${net}.1/24 dev lan0`]);
    const machines: Machine[] = [];
    for (let i = 0; i < count; i++) {
      const host = await this.#machine(`${name}-${i}`);
      await this.#cable(host, 'wan0', router, `port${i}`);
      await router.ip([`link set port${i} master lan0`]);
      if (i < apart) await router.ip([`link set port${i} type bridge_slave isolated on`]);
      await host.ip([`addr add ${net}.${2 + i}/24 dev wan0`, `route add default via ${net}.1`]);
      machines.push(host);
    }
    await router.set('net/ipv4/ip_forward', 1);
    // Otherwise a packet that the router sends back into the LAN would be treated as one that a machine sent there.
    if (existsSync(`/proc/sys/${BRIDGE_RULES}`)) await router.set(BRIDGE_RULES, 0);
    await router.nft(natRules('cone', `${net}.2`));
    await this.#connect(router, [`${PUBLIC}.${100 + this.#last}`]);
    return machines;
  }

  /** Enables hairpinning in the router of a `lan`. */
  async hairpin(name: string): Promise<void> {
    const router = this.#machines.find((machine) => machine.name === `${name}-router`);
    if (router === undefined) throw new Error(`there is no LAN ${name}`);
    const [, outer = ''] = /inet (\S+)\//.exec(await router.run('ip', ['-4', 'addr', 'show', 'dev', 'wan0'])) ?? [];
    await router.nft(hairpinRules(outer));
  }

  /** Gives a machine a public IPv6 address behind its router. */
  async #firewalled(host: Machine, router: Machine): Promise<void> {
    const number = 100 + ++this.#last;
    const net = `2001:db8:${number}:1`;
    await router.ip([
      `addr add ${net}::1/64 dev lan0 nodad`,
      `addr add ${PUBLIC_V6}::${number}/64 dev wan0 nodad`,
      `route add ::/0 via ${PUBLIC_V6}::fe`,
    ]);
    await router.set('net/ipv6/conf/all/forwarding', 1);
    await router.nft(IPV6_FIREWALL);
    await host.ip([`addr add ${net}::2/64 dev wan0 nodad`, `route add ::/0 via ${net}::1`]);
    await this.#backbone.ip([`route add ${net}::/64 via ${PUBLIC_V6}::${number}`]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#machines.splice(0).map((machine) => machine.stop()));
  }
}

/**
 * Counts every UDP packet for a public machine, even without a listener.
 * @param which a filter in nftables syntax
 */
export async function countArrivals(machine: Machine, which = ''): Promise<() => Promise<Arrivals>> {
  const table = which === '' ? 'arrivals' : 'arrivals_that_match';
  await machine.nft(`table inet ${table} {
    counter arrived { }
    chain before { type filter hook prerouting priority -400; iifname "wan0" meta l4proto udp ${which} counter name "arrived"
    }
  }`);
  return async () => {
    const text = await machine.run('nft', ['list', 'counter', 'inet', table, 'arrived']);
    const [, packets, bytes] = /packets (\d+) bytes (\d+)/.exec(text) ?? [];
    return { packets: Number(packets), bytes: Number(bytes) };
  };
}

/**
 * Counts the UDP packets that leave a machine, on every interface.
 * @returns the packets so far by destination, `host:port`. Ports 4121 and 4122 as sources are left out: the sockets of
 *   its daemon
 */
export async function recordDepartures(machine: Machine): Promise<() => Promise<ReadonlyMap<string, number>>> {
  await machine.nft(`table inet departures {
    set ipv4 { type ipv4_addr . inet_service; flags dynamic; counter; size 65535; }
    set ipv6 { type ipv6_addr . inet_service; flags dynamic; counter; size 65535; }
    chain after { type filter hook postrouting priority 400; meta l4proto udp udp sport != { 4121, 4122 } goto departed
    }
    chain departed { update @ipv4 { ip daddr . udp dport }
      update @ipv6 { ip6 daddr . udp dport }
    }
  }`);
  return async () => {
    const sets = ['ipv4', 'ipv6'].map((name) => machine.run('nft', ['-n', 'list', 'set', 'inet', 'departures', name]));
    const text = (await Promise.all(sets)).join('');
    const rows = text.matchAll(/(\S+) \. (\d+) counter packets (\d+)/g);
    return new Map(
      [...rows].map(([, host = '', port, packets]) => [formatAddress({ host, port: Number(port) }), Number(packets)]),
    );
  };
}
