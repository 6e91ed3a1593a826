/** The way out of a node in each kind of network, as the API shows it. */
import { type Exit, OVER_UDP } from '../../src/foundation/domain/exit.ts';

const HELPER = '203.0.113.10:443';
const PROXY = '10.2.0.1:3128';

function failed(code: string, message: string) {
  return { ...OVER_UDP, state: 'failed', trouble: 'udp_silent', error: { code, message } } as const;
}

const TLS: Exit = { ...OVER_UDP, state: 'tls', trouble: 'udp_silent', helper: HELPER, has_spare: true };

export const EXITS = {
  udp: OVER_UDP,
  'udp-blocked': TLS,
  'quic-dropped': { ...TLS, trouble: 'quic_dropped' },
  'lost helper': { ...TLS, helper: null, has_spare: false },
  'mtu-1200': { ...TLS, trouble: 'path_mtu' },
  'five-tuple-30s': { ...TLS, trouble: 'flows_expire' },
  'ipv6-only': { ...TLS, trouble: 'no_ipv4' },
  'connect-proxy': { ...TLS, proxy: PROXY },
  inspected: { ...TLS, proxy: PROXY, is_inspected: true },
  searching: { ...OVER_UDP, state: 'connecting', trouble: 'udp_silent' },
  'relays off': { ...OVER_UDP, state: 'off', trouble: 'udp_silent' },
  'quic-dropped, relays off': { ...OVER_UDP, state: 'off', trouble: 'quic_dropped' },
  'proxy-password': failed(
    'proxy_wants_password',
    `The proxy ${PROXY} wants a password. Set HTTPS_PROXY to http://user:password@${PROXY}.`,
  ),
  portal: failed('portal', 'This network wants a login first. Open any website in a browser, and log in.'),
  'without a helper': { ...OVER_UDP, state: 'failed', trouble: 'udp_silent' },
} as const satisfies Record<string, Exit>;
