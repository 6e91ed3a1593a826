/**
 * Why a connection for UDP over TLS failed: a table from what this node observes to the cause and the text. Messages
 * never contain credentials.
 */
import { HelperFailure, type HelperFailureCode } from '../borrowing.ts';

/** Values in the texts. */
interface Facts {
  /** `host:port` of the helper. */
  readonly to: string;
  /** `host:port` of the proxy. */
  readonly proxy: string;
  /** The source of the proxy setting: a variable, or `"proxy"`. */
  readonly setBy: string;
  /** HTTP status. */
  readonly status: number;
  /** Error code of the system or of the TLS library. */
  readonly code: string;
  /** Scheme of a URL, or an authentication scheme. */
  readonly scheme: string;
}

type Row = readonly [cause: HelperFailureCode, text: (facts: Facts) => string];

const LOGIN = 'This network wants a login first. Open any website in a browser, and log in.';

const TABLE = {
  'the name has no address': [
    'name_unresolved',
    ({ to }) => `${to.replace(/:\d+$/, '')} does not resolve. Check the DNS of this machine.`,
  ],
  'TCP fails': ['tcp_refused', ({ to, code }) => `${to} cannot be reached over TCP (${code}).`],
  'TCP is silent': ['tcp_silent', ({ to }) => `${to} does not answer TCP. A firewall may drop it.`],
  'direct TCP fails, and only HTTP_PROXY is set': [
    'proxy_not_used',
    ({ to }) =>
      `${to} cannot be reached without a proxy. HTTP_PROXY is for http:// only: set HTTPS_PROXY, or "proxy", to the same value.`,
  ],
  'the proxy URL has another scheme': [
    'proxy_invalid',
    ({ setBy, scheme }) =>
      `${setBy} names a proxy of the kind ${scheme}, which svcd does not support. Set HTTPS_PROXY or "proxy" to an http:// or https:// proxy, or "proxy" to "none".`,
  ],
  'the proxy URL is none': [
    'proxy_invalid',
    ({ setBy }) => `${setBy} is not an http:// or https:// URL of a proxy. Correct it.`,
  ],
  'TCP to the proxy fails': [
    'proxy_unreachable',
    ({ proxy, setBy, code }) => `The proxy ${proxy} cannot be reached (${code}). Check ${setBy}.`,
  ],
  'TCP to the proxy is silent': [
    'proxy_unreachable',
    ({ proxy, setBy }) => `The proxy ${proxy} does not answer. Check ${setBy}.`,
  ],
  'the proxy closes': [
    'proxy_unreachable',
    ({ proxy, setBy }) =>
      `The proxy ${proxy} closes the connection without an answer. Check that ${setBy} names an HTTP proxy.`,
  ],
  'CONNECT is silent': [
    'proxy_silent',
    ({ proxy, to }) =>
      `The proxy ${proxy} accepts connections, but has not connected to ${to} in time. It may be slow, or ${to} may not answer it.`,
  ],
  'CONNECT 407 without Basic': [
    'proxy_wants_password',
    ({ proxy, scheme }) =>
      `The proxy ${proxy} wants ${scheme} authentication, which svcd does not support. Run a local proxy that does, and set "proxy" to it.`,
  ],
  'CONNECT 407 to proxy_command': [
    'proxy_wants_password',
    ({ proxy }) => `The proxy ${proxy} rejects the password that proxy_command prints. Check the command.`,
  ],
  'CONNECT 407 to a password': [
    'proxy_wants_password',
    ({ proxy, setBy }) => `The proxy ${proxy} rejects the password in its URL. Correct it in ${setBy}.`,
  ],
  'CONNECT 407': [
    'proxy_wants_password',
    ({ proxy, setBy }) =>
      `The proxy ${proxy} wants a password. Set ${setBy} to http://user:password@${proxy}, or set proxy_command.`,
  ],
  'CONNECT gets a page or a redirect': [
    'portal',
    ({ proxy }) => `The proxy ${proxy} answers with a login page. Open any website in a browser, and log in.`,
  ],
  'CONNECT 5xx': [
    'proxy_cannot_connect',
    ({ proxy, to, status }) => `The proxy ${proxy} cannot connect to ${to} (${status}).`,
  ],
  'CONNECT 4xx': [
    'proxy_refuses',
    ({ proxy, to, status }) =>
      `The proxy ${proxy} does not allow connections to ${to} (${status}). Ask its operator to allow them, or join through a node that is reachable at TCP port 443.`,
  ],
  'the certificate is not signed by tls_ca': [
    'certificate',
    ({ to, code }) =>
      `The TLS certificate at ${to} is not signed by the certificates of tls_ca (${code}). Correct tls_ca, or remove it.`,
  ],
  'TLS fails': [
    'tls_failed',
    ({ to, code }) => `The TLS handshake with ${to} failed (${code}). A firewall may allow only known websites.`,
  ],
  'TLS is silent': ['tls_failed', ({ to }) => `${to} does not answer the TLS handshake. A firewall may drop it.`],
  'the upgrade is silent': [
    'upgrade_stripped',
    ({ to }) => `${to} does not answer the WebSocket upgrade. A firewall may drop it.`,
  ],
  'the upgrade ends the connection': [
    'upgrade_stripped',
    ({ to }) => `${to} ends the connection at the WebSocket upgrade. A proxy may not allow it.`,
  ],
  'the upgrade gets a redirect or 511': ['portal', () => LOGIN],
  'an inspecting proxy refuses the certificate': [
    'certificate_refused',
    ({ to }) =>
      `A proxy that inspects TLS does not accept the certificate of ${to}. Ask its operator to exempt ${to} from inspection, or its owner to set tls_cert to a certificate that the proxy accepts.`,
  ],
  'an inspecting proxy denies access': [
    'proxy_refuses',
    ({ to, status }) => `A proxy on the way does not allow ${to} (${status}). Ask its operator to allow it.`,
  ],
  'an inspecting proxy cannot connect': [
    'proxy_cannot_connect',
    ({ to, status }) =>
      `A proxy on the way cannot connect to ${to}, or does not accept its certificate (${status}). Ask its operator.`,
  ],
  'a proxy answers the upgrade': [
    'upgrade_stripped',
    ({ to, status }) =>
      `A proxy on the way to ${to} does not allow WebSocket (${status}). Ask its operator to allow it.`,
  ],
  'a web server answers the upgrade': [
    'not_a_helper',
    ({ to }) => `${to} is a web server, but not a node that lends ports.`,
  ],
} as const satisfies Record<string, Row>;
export type TlsObservation = keyof typeof TABLE;
export const TLS_OBSERVATIONS = Object.keys(TABLE) as readonly TlsObservation[];

/** The failure for an observation, with its cause and text. */
export function tlsFailure(observation: TlsObservation, facts: Partial<Facts>, cause?: unknown): HelperFailure {
  const [failure, text] = TABLE[observation];
  const none: Facts = { to: '', proxy: '', setBy: '"proxy"', status: 0, code: '', scheme: '' };
  return new HelperFailure(failure, text({ ...none, ...facts }), cause);
}

/** The observation for a response to the upgrade that is not a helper's. */
export function observedResponse(status: number, header: (name: string) => string | undefined): TlsObservation {
  if ((status >= 300 && status < 400) || status === 511) return 'the upgrade gets a redirect or 511';
  const squid = header('X-Squid-Error') ?? '';
  if (/SECURE_CONNECT|TLS|SSL|CERT/i.test(squid)) return 'an inspecting proxy refuses the certificate';
  if (/DENIED|BLOCK/i.test(squid)) return 'an inspecting proxy denies access';
  const isProxied = squid !== '' || header('Via') !== undefined;
  if (isProxied && status >= 500) return 'an inspecting proxy cannot connect';
  return isProxied || status === 426 ? 'a proxy answers the upgrade' : 'a web server answers the upgrade';
}
