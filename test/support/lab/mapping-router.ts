/** A machine behind a router with port mapping: the real `miniupnpd`, as home routers use it. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from '../temporary-directory.ts';
import type { Internet } from './internet.ts';
import type { Machine } from './namespaces.ts';

const PROGRAM = '/usr/sbin/miniupnpd';
/** miniupnpd does not accept documentation ranges, which the rest of the lab uses, as public addresses. */
export const MAPPING_NETWORKS = ['203.0.114', '198.51.101', '192.0.3'] as const;

interface MappingOptions {
  /** Network of its external address: one of `MAPPING_NETWORKS`. */
  readonly network: (typeof MAPPING_NETWORKS)[number];
  /** True for a router with PCP and NAT-PMP in addition to UPnP. */
  readonly speaksPcp: boolean;
  /** An upstream firewall drops unsolicited packets to this port and counts them, in spite of the mapping. */
  readonly keptOutAt?: number;
  /** The same for all other ports too. */
  readonly isShut?: boolean;
}

/** The rules of a home router, with empty chains for miniupnpd. */
function rules({ keptOutAt, isShut = false }: MappingOptions): string {
  const keptOut =
    keptOutAt === undefined ? '' : `iifname "wan0" ct state new udp dport ${keptOutAt} counter name "kept_out" drop`;
  const shut = isShut ? 'iifname "wan0" ct state new meta l4proto udp drop' : '';
  return `table inet nat {
  chain before { type nat hook prerouting priority dstnat; jump miniupnpd
  }
  chain behind { type nat hook postrouting priority srcnat; oifname "wan0" masquerade
  }
  chain miniupnpd { }
  chain miniupnpd-behind { }
}
table inet filter {
  counter kept_out { }
  chain farther { type filter hook prerouting priority -150; ${keptOut}
    ${shut}
  }
  chain own { type filter hook input priority filter; ct state established,related accept; iifname "wan0" drop
  }
  chain through { type filter hook forward priority filter; ct state established,related accept
    jump miniupnpd
    iifname "wan0" drop
  }
  chain miniupnpd { }
}`;
}

function configuration(net: string, speaksPcp: boolean): string {
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
allow 1024-65535 ${net}.0/24 1024-65535
`;
}

export interface MappingLab {
  readonly host: Machine;
  readonly outerHost: string;
  /** True if the router has no mapping. */
  readonly isReleased: () => Promise<boolean>;
  /** Packets to that port that the upstream firewall dropped. */
  readonly keptOut: () => Promise<number>;
}

/** Null, and the test is skipped, if the program is missing. */
export async function behindMappingRouter(
  t: TestContext,
  internet: Internet,
  name: string,
  options: MappingOptions,
): Promise<MappingLab | null> {
  if (!existsSync(PROGRAM)) {
    t.skip(`needs ${PROGRAM}`);
    return null;
  }
  const { host, router, net, outerHost } = await internet.behindBareRouter(name, options.network);
  await router.nft(rules(options));
  const directory = temporaryDirectory(t);
  const file = join(directory, 'miniupnpd.conf');
  writeFileSync(file, configuration(net, options.speaksPcp));
  router.spawn(PROGRAM, ['-d', '-f', file, '-P', join(directory, 'pid')]);
  return {
    host,
    outerHost,
    isReleased: async () => !(await router.run('nft', ['list', 'chain', 'inet', 'nat', 'miniupnpd'])).includes('dnat'),
    keptOut: async () => {
      const counter = await router.run('nft', ['list', 'counter', 'inet', 'filter', 'kept_out']);
      return Number(/packets (\d+)/.exec(counter)?.[1]);
    },
  };
}
