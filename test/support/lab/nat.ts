/** What stands between a machine and the Internet, as rules of nftables for its router. */

/**
 * `cone`: one outer port for a socket whatever it writes to, open only to those whom it wrote to. `symmetric`: another
 * random outer port for each of them. `fullCone`: as cone, and open to everybody.
 */
export type NatKind = 'cone' | 'symmetric' | 'fullCone';

const MAPPING: Readonly<Record<NatKind, string>> = {
  cone: 'masquerade',
  symmetric: 'masquerade random,fully-random',
  fullCone: 'masquerade',
};

/**
 * Rules of a router between the interfaces `lan0` and `wan0`.
 * @param inner the machine behind it that unasked packets go to where it is open to everybody
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

/** Rules of an IPv6 router that lets in only answers: no addresses are translated. */
export const IPV6_FIREWALL = `table ip6 firewall {
  chain through { type filter hook forward priority filter; ct state established,related accept
    iifname "wan0" drop
  }
}`;
