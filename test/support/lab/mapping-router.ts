/** A machine behind a router that maps ports when it is asked: the real `miniupnpd`, as routers of people have it. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { run } from '../programs.ts';
import { temporaryDirectory } from '../temporary-directory.ts';
import { Machine } from './namespaces.ts';

const PROGRAM = '/usr/sbin/miniupnpd';
/** The outer address; the program takes those for documentation, which the rest of the lab has, for no public ones. */
export const OUTER_HOST = '203.0.114.7';

/** As home routers have it, with empty chains that the program fills. */
const RULES = `table inet nat {
  chain before { type nat hook prerouting priority dstnat; jump miniupnpd
  }
  chain behind { type nat hook postrouting priority srcnat; oifname "wan0" masquerade
  }
  chain miniupnpd { }
  chain miniupnpd-behind { }
}
table inet filter {
  chain own { type filter hook input priority filter; ct state established,related accept; iifname "wan0" drop
  }
  chain through { type filter hook forward priority filter; ct state established,related accept
    jump miniupnpd
    iifname "wan0" drop
  }
  chain miniupnpd { }
}`;

function configuration(speaksPcp: boolean): string {
  return `ext_ifname=wan0
listening_ip=lan0
enable_upnp=yes
enable_natpmp=${speaksPcp ? 'yes' : 'no'}
ipv6_disable=yes
secure_mode=yes
upnp_nat_table_name=nat
upnp_table_name=filter
upnp_nat_chain=miniupnpd
upnp_forward_chain=miniupnpd
upnp_nat_postrouting_chain=miniupnpd-behind
uuid=00000000-0000-4000-8000-000000000001
allow 1024-65535 10.9.0.0/24 1024-65535
`;
}

interface MappingLab {
  readonly host: Machine;
  /** True where a datagram from the Internet to a port of the router is answered. */
  readonly isAnswered: (port: number) => Promise<boolean>;
  /** True where the router has no rule for any port. */
  readonly isReleased: () => Promise<boolean>;
}

/** Sends datagrams until an answer comes; says whether one did. */
const ASK = `const [host, port] = process.argv.slice(1);
const socket = require('node:dgram').createSocket('udp4');
socket.on('message', () => process.exit(0));
for (let i = 0; i < 5; i++) setTimeout(() => socket.send('?', Number(port), host), i * 100);
setTimeout(() => process.exit(3), 1000);`;

async function cable(world: Machine, a: Machine, endA: string, b: Machine, endB: string): Promise<void> {
  await world.ip([`link add ${endA} netns ${a.pid} type veth peer name ${endB} netns ${b.pid}`]);
  await Promise.all([a.ip([`link set ${endA} up`]), b.ip([`link set ${endB} up`])]);
}

/**
 * Null, and the test counts as skipped, where the machine lacks a program or does not allow namespaces.
 * @param speaksPcp true for a router that speaks PCP and NAT-PMP beside UPnP
 */
export async function behindMappingRouter(t: TestContext, speaksPcp: boolean): Promise<MappingLab | null> {
  const machines: Machine[] = [];
  t.after(() => Promise.all(machines.map((machine) => machine.stop())));
  try {
    if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing`);
    const outside = await Machine.start('outside', null);
    machines.push(outside);
    const router = await Machine.start('router', outside);
    const host = await Machine.start('host', outside);
    machines.push(router, host);
    await Promise.all(machines.map((machine) => machine.ip(['link set lo up'])));
    await cable(outside, router, 'wan0', outside, 'net0');
    await cable(outside, router, 'lan0', host, 'wan0');
    await outside.ip(['addr add 203.0.114.1/24 dev net0']);
    await router.ip([`addr add ${OUTER_HOST}/24 dev wan0`, 'addr add 10.9.0.1/24 dev lan0']);
    await host.ip(['addr add 10.9.0.2/24 dev wan0', 'route add default via 10.9.0.1']);
    await router.set('net/ipv4/ip_forward', 1);
    await router.nft(RULES);
    const directory = temporaryDirectory(t);
    const file = join(directory, 'miniupnpd.conf');
    writeFileSync(file, configuration(speaksPcp));
    router.spawn(PROGRAM, ['-d', '-f', file, '-P', join(directory, 'pid')]);
    return {
      host,
      isAnswered: (port) => answers(outside, port),
      isReleased: async () =>
        !(await router.run('nft', ['list', 'chain', 'inet', 'nat', 'miniupnpd'])).includes('dnat'),
    };
  } catch {
    t.skip('needs network namespaces (unshare, nsenter), iproute2, nftables and miniupnpd');
    return null;
  }
}

async function answers(outside: Machine, port: number): Promise<boolean> {
  const args = ['-t', String(outside.pid), '--preserve-credentials', '-U', '-n'];
  const { code } = await run('nsenter', [...args, process.execPath, '-e', ASK, OUTER_HOST, String(port)]);
  return code === 0;
}
