/** The value of `tls_listen`: where this node lends UDP ports over TLS. */
import { type Address, isLoopbackHost, parseAddress } from '../address.ts';

/** Value of `tls_listen`: the port of the record network, and 443. */
export const AUTO_TLS_LISTEN = 'auto';
/** Value of `tls_listen` for no listener. */
export const NO_TLS_LISTEN = 'none';
/** Maximum number of addresses in `tls_listen`. */
const MAX_TLS_LISTENERS = 8;
const PLAIN = 'http://';

export interface TlsListenAddress extends Address {
  /** False for plain HTTP behind a web server on this machine. */
  readonly isTls: boolean;
}

function parseOne(text: string): TlsListenAddress | null {
  const isTls = !text.startsWith(PLAIN);
  const address = parseAddress(isTls ? text : text.slice(PLAIN.length).replace(/\/$/, ''));
  if (address === null || (!isTls && !isLoopbackHost(address.host))) return null;
  return { ...address, isTls };
}

/** `auto`, or the addresses (none for `none`); null if the text is invalid. */
export function parseTlsListen(text: string): typeof AUTO_TLS_LISTEN | readonly TlsListenAddress[] | null {
  if (text === AUTO_TLS_LISTEN) return AUTO_TLS_LISTEN;
  if (text === NO_TLS_LISTEN) return [];
  const parsed = text.split(',').map((one) => parseOne(one.trim()));
  const valid = parsed.filter((one) => one !== null);
  return valid.length < parsed.length || valid.length > MAX_TLS_LISTENERS ? null : valid;
}
