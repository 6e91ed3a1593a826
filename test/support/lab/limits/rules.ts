/**
 * Rules of routers that allow little, in nftables syntax, in addition to `natRules`. The interfaces are `lan0` and
 * `wan0`.
 */

/** The hook of packets that the router forwards, before the NAT rules drop unsolicited ones. */
const FORWARDED = 'type filter hook forward priority -5';
/** Largest IP packet of a narrow path, bytes. A device accepts four bytes more than its MTU, for a VLAN tag. */
export const NARROW_BYTES = 1200;
export const NARROW_MTU: number = NARROW_BYTES - 4;
/** Largest TCP segment that fits such a path: without 20 bytes of IPv4 and 20 bytes of TCP. */
const NARROW_SEGMENT = NARROW_MTU - 40;
/** Ports at which a captive portal answers. */
export const PORTAL_PORTS = { http: 8080, https: 8443 } as const;

/** No UDP in any direction. */
export const NO_UDP = `table inet limits {
  chain through { ${FORWARDED}; meta l4proto udp drop
  }
}`;

/** Only HTTP and HTTPS leave, over TCP. */
export const WEB_ONLY = `table inet limits {
  chain through { ${FORWARDED}; ct state established accept
    iifname "lan0" tcp dport { 80, 443 } accept
    drop
  }
}`;

/** Nothing leaves. The LAN reaches only the proxy in this machine, which forwards nothing else. */
export function proxyOnly(port: number): string {
  return `table inet limits {
  chain own { type filter hook input priority filter; iifname "lan0" tcp dport ${port} accept
    iifname "lan0" drop
    ct state established,related accept
    iifname "wan0" drop
  }
  chain through { ${FORWARDED}; drop
  }
}`;
}

/** Drops packets that begin a QUIC connection (versions 1 and 2), at every port. */
export const NO_QUIC = `table inet limits {
  chain through { ${FORWARDED}; meta l4proto udp @th,64,8 & 0xc0 == 0xc0 @th,72,32 { 0x00000001, 0x6b3343cf } drop
  }
}`;

/** Each UDP flow works for some time, and never again. */
export function shortFlows(seconds: number): string {
  return `table ip limits {
  set young { type inet_service . ipv4_addr . inet_service; flags dynamic,timeout; timeout ${seconds}s; size 65536; }
  set known { type inet_service . ipv4_addr . inet_service; flags dynamic; size 65536; }
  chain through { ${FORWARDED}
    iifname "lan0" meta l4proto udp goto out
    oifname "lan0" meta l4proto udp udp dport . ip saddr . udp sport != @young drop
  }
  chain out {
    udp sport . ip daddr . udp dport @young return
    udp sport . ip daddr . udp dport @known drop
    add @young { udp sport . ip daddr . udp dport }
    add @known { udp sport . ip daddr . udp dport }
  }
}`;
}

/** No UDP, and the router forgets TCP connections that are silent for some time. It does not tell their ends. */
export function idleCut(seconds: number): string {
  return `table ip limits {
  set live { type inet_service . ipv4_addr . inet_service; flags dynamic,timeout; timeout ${seconds}s; size 65536; }
  chain through { ${FORWARDED}; meta l4proto udp drop
    iifname "lan0" meta l4proto tcp goto out
    oifname "lan0" meta l4proto tcp goto back
  }
  chain out {
    tcp flags & (syn | ack) != syn tcp sport . ip daddr . tcp dport != @live drop
    update @live { tcp sport . ip daddr . tcp dport }
  }
  chain back {
    tcp dport . ip saddr . tcp sport != @live drop
    update @live { tcp dport . ip saddr . tcp sport }
  }
}`;
}

/** The router does not say that packets are too big. TCP gets segments that fit. */
export const NARROW_PATH = `table ip limits {
  chain silent { type filter hook output priority filter; icmp type destination-unreachable icmp code frag-needed drop
  }
  chain through { ${FORWARDED}; tcp flags & (syn | rst) == syn tcp option maxseg size set ${NARROW_SEGMENT}
  }
}`;

/** Until the machine has logged in, the router answers web requests itself, and drops everything else. */
export const PORTAL = `table ip limits {
  set free { type ipv4_addr; }
  chain before { type nat hook prerouting priority -110
    iifname "lan0" ip saddr != @free tcp dport 80 redirect to :${PORTAL_PORTS.http}
    iifname "lan0" ip saddr != @free tcp dport 443 redirect to :${PORTAL_PORTS.https}
  }
  chain through { ${FORWARDED}; iifname "lan0" ip saddr != @free drop
  }
}`;

/** Lets a machine through the portal. */
export function loggedIn(host: string): string {
  return `add element ip limits free { ${host} }`;
}

/** The device of the translator of a NAT64, and the network of IPv4 hosts as IPv6 addresses behind it (RFC 6052). */
export const NAT64_DEVICE = 'nat64';
export const NAT64_NETWORK = '64:ff9b::';
/** The IPv4 address of the machine between the translator and the NAT of its router. */
export const NAT64_INNER = '192.168.64.2';
