/** NAT kinds as nftables rules of a router. */

/**
 * `cone`: one external port per socket, open to contacted hosts only. `symmetric`: a random external port per
 * destination. `fullCone`: like cone, and open to all.
 */
export type NatKind = 'cone' | 'symmetric' | 'fullCone';

const MAPPING: Readonly<Record<NatKind, string>> = {
  cone: 'masquerade',
  symmetric: 'masquerade random,fully-random',
  fullCone: 'masquerade',
};

/**
 * Rules of a router between the interfaces `lan0` and `wan0`.
 * @param inner the machine that receives unsolicited packets with `fullCone`
 */
export function natRules(kind: NatKind, inner: string): string {
  const open = kind === 'fullCone' ? `iifname "wan0" udp dport 1024-65535 dnat to ${inner}` : '';
  return `table ip nat {
    chain before { type nat hook prerouting priority dstnat; ${open}
    }
    chain behind { type nat hook postrouting priority srcnat; oifname "wan0" ${MAPPING[kind]}
    }
    chain own { type filter hook input priority filter; ct state established,related accept; iifname "wan0" drop
    }
    chain through { type filter hook forward priority filter; ct state established,related accept
      iifname "wan0" ct status dnat accept
      iifname "wan0" drop
    }
  }`;
}

/**
 * Additional hairpin rules of a router that keeps ports: packets from the LAN to its external address reach the
 * machine with that port.
 */
export function hairpinRules(outer: string): string {
  return `table ip hairpin {
    map inner { type inet_service : ipv4_addr; flags dynamic,timeout; timeout 5m;
    }
    chain before { type nat hook prerouting priority dstnat; iifname "lan0" ip daddr ${outer} dnat to udp dport map @inner
    }
    chain noted { type filter hook forward priority filter; iifname "lan0" oifname "wan0" meta l4proto udp update @inner { udp sport : ip saddr }
    }
    chain behind { type nat hook postrouting priority srcnat; iifname "lan0" oifname "lan0" ct status dnat snat to ${outer}
    }
  }`;
}

/** Rules of an IPv6 firewall without NAT that only accepts responses. */
export const IPV6_FIREWALL = `table ip6 firewall {
  chain through { type filter hook forward priority filter; ct state established,related accept
    iifname "wan0" drop
  }
}`;
