/** Checks of the network: connected, reachable by strangers, clock correct. */
import { hostOfUrl, isLoopbackHost, isPublicHost } from '../../../foundation/address.ts';
import { networkText, pluralize } from '../../../foundation/display-text.ts';
import { cutOffText, type Exit, LISTEN_ADDRESS_REMEDY, OVER_UDP } from '../../../foundation/domain/exit.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { NO_NODE_KNOWN } from '../../../foundation/domain/joining.ts';
import { CLOCK_SKEW_S } from '../../../foundation/domain/time.ts';
import { canonicalIp, IP_SCOPE, ipScope } from '../../../foundation/ip.ts';
import type { Examination, OwnAnswer } from './examination.ts';

type Checked = OwnAnswer<'netcheck'>;

function isCutOff({ exit }: Checked): boolean {
  return cutOffText(exit) !== null;
}

/** With fewer peers the network is fragile. */
const FEW_PEERS = 3;
/** Offset that is worth a warning, seconds. */
const CLOCK_WARN_S = 10;

const TROUBLE = {
  unresolved: {
    code: 'contact_unresolved',
    what: 'has no address: its name does not resolve',
    hint: 'Check the name and the DNS of this machine, or remove it from bootstrap.',
  },
  ipv6: {
    code: 'contact_ipv6',
    what: 'has no IPv4 address, which the record network requires',
    hint: 'Use a host with an IPv4 address, or add an A record to its name.',
  },
  silent: {
    code: 'contact_silent',
    what: 'does not answer',
    hint: 'Check that svcd runs there, that its UDP port is open, and that the network name is the same.',
  },
  other_key: {
    code: 'contact_other_key',
    what: 'is a different node: it does not prove the key before the @',
    hint: 'Ask its owner for a new invitation. Remove this contact with "svc contacts rm <contact>", or from bootstrap.',
  },
} as const;

/** How datagrams leave this network, if not over UDP. */
function examineExit({ exit }: Checked): Finding[] {
  const network = findingsOf('network');
  const { state, trouble, error, is_inspected: isInspected } = exit;
  const [helper, proxy] = [exit.helper ?? '', exit.proxy ?? ''];
  const protocol = trouble === 'udp_silent' ? 'UDP' : trouble === 'no_ipv4' ? 'IPv4' : 'QUIC';
  const reason = error?.message ?? 'Allow outgoing UDP, or TCP port 443.';
  const values = { protocol, helper, proxy, reason };
  const silent = `no node answers over ${protocol}`;
  if (state === 'udp') return [];
  if (trouble === 'no_listen_address' && state !== 'tls')
    return [
      network.fail('this machine has lost the address that listen_addr names', LISTEN_ADDRESS_REMEDY, {
        code: 'listen_address_lost',
      }),
    ];
  if (state === 'connecting' || (state === 'tls' && helper === ''))
    return [
      network.warn(`${silent}, and no helper is connected over TLS yet`, 'Wait a few seconds and try again.', {
        code: 'exit_connecting',
        values,
      }),
    ];
  if (state === 'off')
    return [
      network.fail(`${silent}, and disable_relay excludes TLS`, 'Allow outgoing UDP, or set disable_relay = false.', {
        code: 'exit_off',
        values,
      }),
    ];
  if (state === 'failed')
    return [network.fail(`${silent}, and no helper can be reached over TLS`, reason, { code: 'exit_failed', values })];
  const through = proxy === '' ? `helper ${helper}` : `helper ${helper} and the proxy ${proxy}`;
  const connected = `this node is connected over TLS through ${through}`;
  return [
    trouble === 'flows_expire'
      ? network.info(`${connected}: the network drops UDP flows some time after their start`, undefined, {
          code: 'exit_flows',
          values,
        })
      : network.info(`${connected}: ${silent}`, 'Allow outgoing UDP for direct and faster paths.', {
          code: proxy === '' ? 'exit_tls' : 'exit_proxy',
          values,
        }),
    ...(isInspected
      ? [
          network.info('the network decrypts TLS; connections between nodes inside stay encrypted', undefined, {
            code: 'exit_inspected',
          }),
        ]
      : []),
  ];
}

function examinePeers(checked: Checked): Finding {
  const { dht_peers: peers, dht_clients: clients, network_ready: ready } = checked;
  const network = findingsOf('network');
  if (clients > 0)
    return network.pass(`the network is ready: ${networkText(peers, clients)}`, {
      code: 'network_used',
      values: { peers, clients },
    });
  if (peers === 0) return network.fail('no other node is known', NO_NODE_KNOWN, { code: 'no_node_known' });
  if (!ready)
    return network.warn('still joining the network', 'Wait a few seconds and try again.', { code: 'network_joining' });
  if (peers >= FEW_PEERS)
    return network.pass(`the network is ready, ${peers} nodes are known`, {
      code: 'network_ready',
      values: { n: peers },
    });
  // A small network stays small.
  return network.info(
    `only ${peers} ${peers === 1 ? 'node is' : 'nodes are'} known`,
    'With few nodes, records are stored only a few times. Add bootstrap nodes if you can.',
    { code: 'few_nodes', values: { n: peers } },
  );
}

/** Published addresses that others cannot use. */
function examineEndpoints({ addresses, helpers }: Checked): Finding | null {
  const reachability = findingsOf('reachability');
  const addressTexts = addresses.filter(({ published }) => published).map(({ address }) => address);
  const published = addressTexts.join(', ');
  const urls = addressTexts.flatMap((address) => URL.parse(`http://${address}`) ?? []);
  if (urls.length === 0)
    return reachability.warn(
      'this node has no address to publish',
      'Set fallback_host to the name or address of this node, or find out why no interface has an address.',
      { code: 'no_address' },
    );
  if (urls.every((url) => isLoopbackHost(hostOfUrl(url))))
    return reachability.warn(
      `this node publishes ${published}: only this machine can use that`,
      'It also finds only nodes on this machine. Set listen_addr to an address that is not loopback, or set fallback_host.',
      { code: 'loopback_addresses', values: { addresses: published } },
    );
  if (urls.some(isPublicHost) || helpers.length > 0) return null;
  return reachability.info(`this node publishes only local addresses: ${published}`, undefined, {
    code: 'local_addresses',
    values: { addresses: published },
  });
}

function examineNat({ dht_peers, dht_clients, nat_type, nat_type_label, port_mapping, helpers }: Checked): Finding {
  const reachability = findingsOf('reachability');
  const nat = nat_type_label;
  if (helpers.length > 0) {
    const through = helpers.map(({ address }) => address).join(', ');
    return reachability.pass(`others reach this node through ${through} (NAT: ${nat})`, {
      code: 'reached_by_helpers',
      values: { helpers: through, nat },
    });
  }
  if (nat_type === 0 || dht_peers + dht_clients === 0)
    return reachability.info('not known yet whether strangers can reach this node', undefined, {
      code: 'reachability_unknown',
    });
  if (nat_type === 1) return reachability.pass('strangers can reach this node', { code: 'reachable' });
  if (port_mapping === 'double_nat')
    return reachability.warn(
      'the router forwards ports to this node, but is behind another router',
      'Forward the UDP ports of listen_addr and quic_listen_addr on the outer router to the inner one, or run one of them as a bridge.',
      { code: 'double_nat' },
    );
  return reachability.warn(
    `this node is behind a NAT (${nat}), and no helper is connected`,
    'Add reachable nodes to bootstrap. Or open the UDP ports of listen_addr and quic_listen_addr on your router, or set fallback_host to the address that leads here.',
    { code: 'no_helper', values: { nat } },
  );
}

function examineClock({ clock: { offset_s: offset, peers } }: Checked): Finding {
  const clock = findingsOf('clock');
  if (offset === null)
    return clock.info('no other node has reported its clock yet', undefined, { code: 'clock_unknown' });
  const seconds = Math.round(Math.abs(offset));
  const who =
    peers === 1 ? 'the only node that reported its clock' : `half of the ${peers} nodes that reported their clocks`;
  const what = `the clock of this machine is ${seconds} s ${offset > 0 ? 'behind' : 'ahead of'} ${who}`;
  const hint = 'Set the clock and turn NTP on. Other nodes reject records with a wrong time.';
  const name = { code: offset > 0 ? 'clock_behind' : 'clock_ahead', values: { seconds, n: peers } } as const;
  if (seconds > CLOCK_SKEW_S && peers >= FEW_PEERS) return clock.fail(what, hint, name);
  if (seconds > CLOCK_WARN_S) return clock.warn(what, hint, name);
  return clock.pass(`the clock agrees with other nodes (${peers} asked)`, {
    code: 'clock_correct',
    values: { n: peers },
  });
}

type Contact = OwnAnswer<'contacts'>['contacts'][number];

/** The node key of a contact, or null, and its host. */
function partsOf({ contact }: Contact): { readonly node: string | null; readonly host: string } {
  const at = contact.lastIndexOf('@');
  const host = URL.parse(`http://${contact.slice(at + 1)}`)?.hostname ?? '';
  return { node: at < 0 ? null : contact.slice(0, at), host };
}

/** True for an address of a local network. Another machine may have it in the network of this node. */
function isLocal(host: string): boolean {
  const ip = canonicalIp(host.replace(/^\[|\]$/g, ''));
  return ip !== null && ipScope(ip) < IP_SCOPE.public;
}

/**
 * Problems of the contacts. One working address of a node is enough: an invitation names all addresses of a node, and
 * the addresses of its local network lead nowhere, or to another node, from elsewhere.
 */
export function examineContacts(contacts: readonly Contact[], exit: Exit = OVER_UDP): Finding[] {
  const network = findingsOf('network');
  const met = contacts.filter(({ state }) => state === 'met');
  const reached = new Set(met.map((one) => partsOf(one).node));
  const helper = exit.helper === null ? null : URL.parse(`http://${exit.helper}`)?.hostname;
  const isExplained = (one: Contact): boolean => {
    const { node, host } = partsOf(one);
    // A proxy resolves names, and the helper in use need not answer over UDP.
    if (host === helper || (one.state === 'unresolved' && exit.proxy !== null)) return true;
    if (one.state === 'silent' && cutOffText(exit) !== null) return true;
    if (one.state === 'other_key' && !isLocal(host)) return false;
    const isFromElsewhere = one.joined && !one.has_answered && isLocal(host) && met.length > 0;
    return (node !== null && reached.has(node)) || isFromElsewhere;
  };
  return contacts.flatMap((one) => {
    const { contact, state } = one;
    const trouble = state === 'untried' || state === 'met' || isExplained(one) ? undefined : TROUBLE[state];
    return trouble === undefined
      ? []
      : [network.warn(`${contact} ${trouble.what}`, trouble.hint, { code: trouble.code, values: { contact } })];
  });
}

const LENDING = {
  in_use: {
    code: 'tls_port_in_use',
    what: 'another program uses it',
    hint: 'Stop that program. If it is a web server, let it pass "/svcd/1" to svcd, and set tls_listen to an http:// address for it.',
  },
  not_permitted: {
    code: 'tls_port_not_permitted',
    what: 'the system does not permit ports below 1024',
    hint: 'Run "sudo svcd service install" again, which permits it, or "sudo sysctl net.ipv4.ip_unprivileged_port_start=443". If no node needs it, set tls_listen to another port.',
  },
  unusable: {
    code: 'tls_port_unusable',
    what: 'the port cannot be opened',
    hint: 'The log has the error. Correct tls_listen.',
  },
} as const;

/**
 * TCP ports for nodes without UDP that this node could not open. No warning if another one is open, because a node
 * without the right to use port 443 works.
 */
export function examineLending({
  lent_ports: { listen_addrs, failed_addrs },
}: {
  readonly lent_ports: Pick<OwnAnswer<'status'>['lent_ports'], 'listen_addrs' | 'failed_addrs'>;
}): Finding[] {
  const reachability = findingsOf('reachability');
  return failed_addrs.map(({ address, trouble }) => {
    const { code, what, hint } = LENDING[trouble];
    return reachability[listen_addrs.length > 0 ? 'info' : 'warn'](
      `nodes without UDP cannot connect at ${address}/tcp: ${what}`,
      hint,
      {
        code,
        values: { address },
      },
    );
  });
}

/** The record network and QUIC use different ports. A firewall may block only one of them. */
async function examineQuic(dialSome: Examination['dialSome']): Promise<Finding[]> {
  const { dialled, reached, isNarrow } = await dialSome();
  const network = findingsOf('network');
  if (dialled === 0) return [];
  if (reached > 0)
    return [
      network.pass(`nodes answer over QUIC (${reached} of ${dialled} dialed)`, {
        code: 'quic_works',
        values: { reached, dialed: dialled },
      }),
    ];
  if (isNarrow)
    return [
      network.fail(
        'only short UDP packets pass: the path drops the 1,200 bytes that QUIC needs, so calls and tunnels do not work',
        'Set the MTU of the network interface, VPN or router to at least 1,280 bytes, or let svcd use UDP over TLS: allow outgoing TCP 443.',
        { code: 'path_mtu' },
      ),
    ];
  return [
    network.fail(
      `${pluralize(dialled, 'node')} ${dialled === 1 ? 'answers' : 'answer'} in the record network, but none over QUIC: calls and tunnels do not work`,
      'A firewall blocks QUIC. Allow UDP on the port of quic_listen_addr. If it is empty, that is the port after listen_addr.',
      { code: 'quic_blocked', values: { n: dialled } },
    ),
  ];
}

/** Uses the same report as `svc netcheck`. */
export async function examineNetwork({ ask, context, dialSome }: Examination): Promise<readonly Finding[]> {
  const [checked, status, { contacts }, quic] = await Promise.all([
    ask.netcheck({}, context),
    ask.status({}, context),
    ask.contacts({}, context),
    examineQuic(dialSome),
  ]);
  return [
    // Without a way out, the number of nodes says nothing more.
    ...(isCutOff(checked) && checked.dht_peers === 0 ? [] : [examinePeers(checked)]),
    ...examineExit(checked),
    // Otherwise, the way out explains why QUIC does not work.
    ...(isCutOff(checked) && checked.exit.trouble !== 'path_mtu' ? [] : quic),
    ...examineContacts(contacts, checked.exit),
    examineEndpoints(checked) ?? examineNat(checked),
    ...examineLending(status),
    examineClock(checked),
  ];
}
