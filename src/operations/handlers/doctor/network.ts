/** Whether this node is in the network, whether strangers reach it, and whether its clock is right. */
import { hostOfUrl, isLoopbackHost } from '../../../foundation/address.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { NO_NODE_KNOWN } from '../../../foundation/domain/joining.ts';
import { CLOCK_SKEW_S } from '../../../foundation/domain/time.ts';
import { counted, networkText } from '../../../foundation/plain-words.ts';
import { isPublicHost } from '../../../foundation/public-host.ts';
import type { Examination, OwnAnswer } from './examination.ts';

type Checked = OwnAnswer<'netcheck'>;

/** Fewer peers than this make the network fragile. */
const FEW_PEERS = 3;
/** Worth a word, seconds. */
const CLOCK_WARN_S = 10;

const TROUBLE = {
  unresolved: {
    what: 'has no address: its name leads nowhere',
    hint: 'Check the name, and the DNS of this machine; or take it out of bootstrap.',
  },
  ipv6: {
    what: 'has no IPv4 address, which nodes of the record network need',
    hint: 'Name one that has, or give its name an A record.',
  },
  silent: {
    what: 'does not answer',
    hint: 'See whether svcd runs there, whether its UDP port is open, and whether it is in a network of the same name.',
  },
  other_key: {
    what: 'does not prove the key before the @: another node is there',
    hint: 'Ask its owner for a new invitation, and forget this one: "svc contacts forget <contact>", or take it out of bootstrap.',
  },
} as const;

function examinePeers({ dht_peers: peers, dht_clients: clients, network_ready: ready }: Checked): Finding {
  const network = findingsOf('network');
  if (clients > 0) return network.pass(`the network is ready: ${networkText(peers, clients)}`);
  if (peers === 0) return network.fail('no other node is known', NO_NODE_KNOWN);
  if (!ready) return network.warn('the network is still being joined', 'Wait some seconds and try again.');
  if (peers >= FEW_PEERS) return network.pass(`the network is ready, ${peers} nodes are known`);
  return network.warn(
    `only ${peers} ${peers === 1 ? 'node is' : 'nodes are'} known`,
    'Records are kept by few nodes: give more bootstrap nodes if you can.',
  );
}

/** What others are told of where this node is, where that is no use to them. */
function examineEndpoints({ addresses, helpers }: Checked): Finding | null {
  const reachability = findingsOf('reachability');
  const told = addresses.filter(({ published }) => published).map(({ address }) => address);
  const urls = told.flatMap((address) => URL.parse(`http://${address}`) ?? []);
  if (urls.length === 0)
    return reachability.warn(
      'this node has no address to publish',
      'Set fallback_host to the name or address that leads here, or find out why no interface has one.',
    );
  if (urls.every((url) => isLoopbackHost(hostOfUrl(url))))
    return reachability.warn(
      `this node publishes ${told.join(', ')}: only this machine can use that`,
      'It also finds nodes of this machine only. Let listen_addr name no loopback address, or set fallback_host.',
    );
  if (urls.some(isPublicHost) || helpers.length > 0) return null;
  return reachability.info(`this node publishes addresses of its own network only: ${told.join(', ')}`);
}

function examineNat({ dht_peers, dht_clients, nat_type, nat_type_label, port_mapping, helpers }: Checked): Finding {
  const reachability = findingsOf('reachability');
  if (helpers.length > 0)
    return reachability.pass(
      `others reach this node with the help of ${helpers.map(({ address }) => address).join(', ')} (NAT: ${nat_type_label})`,
    );
  if (nat_type === 0 || dht_peers + dht_clients === 0)
    return reachability.info('it is not known yet whether strangers can reach this node');
  if (nat_type === 1) return reachability.pass('strangers can reach this node');
  if (port_mapping === 'double_nat')
    return reachability.warn(
      'the router leads ports to this node, and is behind another router itself',
      'Have the outer router lead the UDP ports of listen_addr and quic_listen_addr to the inner one, or make one of them a bridge.',
    );
  return reachability.warn(
    `this node is behind a NAT (${nat_type_label}), and no other node helps it`,
    'Name nodes that strangers reach in bootstrap; or open the UDP ports of listen_addr and quic_listen_addr in your router, or set fallback_host to the address that leads here.',
  );
}

function examineClock({ clock: { offset_s: offset, peers } }: Checked): Finding {
  const clock = findingsOf('clock');
  if (offset === null) return clock.info('no other node has said yet what time it is');
  const seconds = Math.round(Math.abs(offset));
  const who = peers === 1 ? 'the only node that said the time' : `half of the ${peers} nodes that said the time`;
  const what = `the clock of this machine is ${seconds} s ${offset > 0 ? 'behind' : 'ahead of'} ${who}`;
  const hint = 'Set the clock, and let it be kept by NTP: records with a wrong time are refused.';
  if (seconds > CLOCK_SKEW_S && peers >= FEW_PEERS) return clock.fail(what, hint);
  if (seconds > CLOCK_WARN_S) return clock.warn(what, hint);
  return clock.pass(`the clock agrees with other nodes (${peers} asked)`);
}

/** The node that a contact pins; null if it pins none. */
function pinnedNode(contact: string): string | null {
  const at = contact.lastIndexOf('@');
  return at < 0 ? null : contact.slice(0, at);
}

/** What is wrong with the contacts. One address of a node is enough: an invitation names those of its LAN as well. */
export function examineContacts(contacts: OwnAnswer<'contacts'>['contacts']): Finding[] {
  const network = findingsOf('network');
  const met = new Set(contacts.filter(({ state }) => state === 'met').map(({ contact }) => pinnedNode(contact)));
  return contacts.flatMap(({ contact, state }) => {
    const node = pinnedNode(contact);
    const isReachedElsewhere = state === 'silent' && node !== null && met.has(node);
    const trouble = state === 'untried' || state === 'met' || isReachedElsewhere ? undefined : TROUBLE[state];
    return trouble === undefined ? [] : [network.warn(`${contact} ${trouble.what}`, trouble.hint)];
  });
}

/** Records travel over the port of the record network, and all else over QUIC, which a firewall may drop alone. */
async function examineQuic(dialSome: Examination['dialSome']): Promise<Finding[]> {
  const { dialled, reached } = await dialSome();
  const network = findingsOf('network');
  if (dialled === 0) return [];
  if (reached > 0) return [network.pass(`nodes are reached over QUIC (${reached} of ${dialled} dialled)`)];
  return [
    network.fail(
      `${counted(dialled, 'node')} ${dialled === 1 ? 'answers' : 'answer'} in the record network, and none over QUIC: no call or tunnel reaches them`,
      'A firewall drops QUIC: allow UDP from and to the port of quic_listen_addr, which is the one after listen_addr if it is empty.',
    ),
  ];
}

/** Stands on the same look as `svc netcheck`. */
export async function examineNetwork({ ask, context, dialSome }: Examination): Promise<readonly Finding[]> {
  const [checked, { contacts }, quic] = await Promise.all([
    ask.netcheck({}, context),
    ask.contacts({}, context),
    examineQuic(dialSome),
  ]);
  return [
    examinePeers(checked),
    ...quic,
    ...examineContacts(contacts),
    examineEndpoints(checked) ?? examineNat(checked),
    examineClock(checked),
  ];
}
