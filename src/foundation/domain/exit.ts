/** How datagrams leave the network of a node: over UDP, or over TLS through a helper. Rules: docs/reach.md. */

/**
 * - `udp`: UDP is used, or no node is known that could contradict this
 * - `connecting`: UDP does not work, and the node searches a helper over TLS
 * - `tls`: UDP over TLS is used
 * - `failed`: neither works
 * - `off`: UDP does not work, and `disable_relay` excludes TLS
 */
export const EXIT_STATES = ['udp', 'connecting', 'tls', 'failed', 'off'] as const;
export type ExitState = (typeof EXIT_STATES)[number];

/**
 * Why UDP is not used:
 * - `no_listen_address`: this machine has lost the address that `listen_addr` names
 * - `no_ipv4`: this machine has IPv6 only, and the record network uses IPv4
 * - `udp_silent`: no node answers
 * - `quic_dropped`: nodes answer in the record network, but not over QUIC
 * - `path_mtu`: only short packets pass: QUIC needs IP packets of 1,228 bytes
 * - `flows_expire`: UDP flows are dropped some time after their first packet
 */
export const UDP_TROUBLES = [
  'no_listen_address',
  'no_ipv4',
  'udp_silent',
  'quic_dropped',
  'path_mtu',
  'flows_expire',
] as const;
export type UdpTrouble = (typeof UDP_TROUBLES)[number];

/** The way out as the API shows it. */
export interface Exit {
  readonly state: ExitState;
  readonly trouble: UdpTrouble | null;
  /** `host:port` of the helper that lends ports. */
  readonly helper: string | null;
  /** `host:port` of the HTTP proxy in use. */
  readonly proxy: string | null;
  readonly has_spare: boolean;
  /** Something on the way decrypts TLS. */
  readonly is_inspected: boolean;
  /** Why no helper can be reached over TLS, with what to do. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** The way out while nothing contradicts UDP. */
export const OVER_UDP: Exit = {
  state: 'udp',
  trouble: null,
  helper: null,
  proxy: null,
  has_spare: false,
  is_inspected: false,
  error: null,
};

const TROUBLE: Readonly<Record<UdpTrouble, string>> = {
  no_listen_address: 'this machine does not have its listen address',
  no_ipv4: 'this machine has IPv6 only, and the record network uses IPv4',
  udp_silent: 'no node answers over UDP',
  quic_dropped: 'the network drops QUIC',
  path_mtu: 'only short UDP packets pass, and QUIC needs an MTU of 1,280 bytes',
  flows_expire: 'the network drops UDP flows some time after their start',
};

/** What happens without the listen address, and the alternative. */
export const LISTEN_ADDRESS_REMEDY =
  'The node waits for it and continues when it returns. To use all addresses, set listen_addr to :4121.';

const INSPECTED = 'The network decrypts TLS. Connections between nodes inside stay encrypted.';

function troubleText({ trouble }: Exit): string {
  return trouble === null ? 'UDP does not work' : TROUBLE[trouble];
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** The way out and its reason, in one line. */
export function exitText(exit: Exit): string {
  const { state, helper, proxy, is_inspected: isInspected } = exit;
  const trouble = troubleText(exit);
  if (state === 'udp') return 'UDP';
  if (state === 'tls') {
    const through = proxy === null ? '' : `, through the proxy ${proxy}`;
    // A lost connection is being opened again.
    const to = helper === null ? '' : ` through helper ${helper}${through}`;
    return `over TLS${to}, because ${trouble}.${isInspected ? ` ${INSPECTED}` : ''}`;
  }
  return `none: ${trouble}. ${remedyText(exit)}`;
}

/** What to do, or what the node does, if there is no way out. */
function remedyText({ state, trouble, error }: Exit): string {
  if (trouble === 'no_listen_address') return LISTEN_ADDRESS_REMEDY;
  if (state === 'connecting') return 'A helper is searched over TLS. Try again in a few seconds.';
  if (state === 'off') return 'disable_relay excludes TLS. Allow outgoing UDP, or set disable_relay = false.';
  return error === null
    ? 'No helper can be reached over TLS. Allow outgoing UDP, or TCP port 443.'
    : `TLS does not work either. ${error.message}`;
}

/** Why this node reaches no node in other networks, and what to do. Null if nothing is known that prevents it. */
export function cutOffText(exit: Exit): string | null {
  if (exit.state === 'udp' || exit.state === 'tls') return null;
  return `${capitalized(troubleText(exit))}. ${remedyText(exit)}`;
}
