/** Addresses of bound services: what `service_tcp` may hold. */
import { type Address, isLoopbackHost, mayBeThisMachine, parseAddress } from './address.ts';
import { MAX_SERVICE_ADDRESS_CHARS } from './domain/agents.ts';
import { SvcError } from './errors.ts';
import type { Aid } from './identity/aid.ts';
import { canonicalIp } from './ip.ts';

export interface ServiceAddress extends Address {
  readonly scheme: 'tcp' | 'http' | 'https';
  /** HTTP requests come to it, each with who calls. */
  readonly takesCalls: boolean;
  /**
   * Where TCP connections come to, whose bytes may say anything: a header that names somebody too. It may be another
   * port than that of calls. Null: nowhere.
   */
  readonly tunnels: Address | null;
  /** False for `https+insecure`: any certificate is taken. */
  readonly verifyCertificate: boolean;
  /** `http+proven`: the program proves on each connection that it is the one which was bound. */
  readonly provesItself: boolean;
  /** The canonical text: no blanks, no slash at the end. */
  readonly text: string;
}

function refused(reason: string): SvcError {
  return new SvcError('bad_service_address', {
    message: `Invalid service address: ${reason}. Use host:port, tcp://host:port, http://host:port, https://host:port or https+insecure://host:port. Write +tcp before :// to allow tunnels to a web service too, or append ,tcp://host:port for tunnels to another port. http+proven://host:port is for programs that prove themselves.`,
    details: { reason },
  });
}

const FORM = /^(?:(?:(tcp)|(https?|https\+insecure)(\+tcp|\+proven)?):\/\/)?(.*)$/is;

/**
 * Reads where a service is, and which ways lead to it. `http://host:port` and `https://host:port` take calls,
 * `tcp://host:port` takes tunnels, `host:port` both; so do `http+tcp://`, `https+tcp://`. The certificate of
 * `https+insecure://` and `https+insecure+tcp://` is not verified. See docs/decisions/0022. Calls may go to one port and
 * tunnels to another: `http://host:port,tcp://host:port`. See docs/decisions/0044. Behind `http+proven://` is a program
 * that proves itself, see docs/protocol-calls.md.
 * @throws SvcError `bad_service_address`
 */
export function parseServiceAddress(input: string): ServiceAddress {
  if (input.trim().length > MAX_SERVICE_ADDRESS_CHARS) throw refused('the text is too long');
  const [first = '', second, ...more] = input.split(',');
  const service = parseOne(first);
  if (second === undefined) return service;
  if (more.length > 0) throw refused('more than two addresses');
  const tunnels = parseOne(second);
  if (service.tunnels !== null || tunnels.takesCalls)
    throw refused('of two addresses, the first must be http:// or https://, and the second tcp://');
  return { ...service, tunnels: tunnels.tunnels, text: `${service.text},${tunnels.text}` };
}

function parseOne(input: string): ServiceAddress {
  const text = input.trim().replace(/\/$/, '');
  const [, tcp, web, more, rest = ''] = FORM.exec(text) ?? [];
  const address = parseAddress(rest);
  if (address === null) throw refused('this is not a host and a port');
  if (address.host === '') throw refused('the host is missing');
  if (address.port === 0) throw refused('the port must be 1 to 65535');
  const scheme = web?.toLowerCase();
  const provesItself = more?.toLowerCase() === '+proven';
  if (provesItself && scheme !== 'http') throw refused('only http+proven:// can be proven');
  const prefix = [tcp, web, more]
    .filter((part) => part !== undefined)
    .join('')
    .toLowerCase();
  return {
    ...address,
    scheme: scheme === undefined ? 'tcp' : scheme === 'http' ? 'http' : 'https',
    takesCalls: tcp === undefined,
    tunnels: web === undefined || more?.toLowerCase() === '+tcp' ? address : null,
    verifyCertificate: scheme !== 'https+insecure',
    provesItself,
    text: prefix === '' ? rest : `${prefix}://${rest}`,
  };
}

export interface OwnApi {
  /** Where the daemon's own API listens; null where it has none. An empty host is every interface. */
  api(): Address | null;
  /** The addresses of this machine's interfaces. */
  interfaces(): readonly string[];
  /** Addresses of a host name; rejects where it has none. */
  lookup(host: string): Promise<readonly string[]>;
  /** Ports of the local addresses of an agent on this machine. */
  localPorts?(aid: Aid): readonly number[];
}

/**
 * Refuses a local address of the agent itself: each call would come back to it.
 * @throws SvcError `bad_service_address`
 */
export function rejectOwnLocalAddress(service: ServiceAddress, aid: Aid, own: OwnApi): void {
  const ports = new Set(own.localPorts?.(aid));
  if (addressesOf(service).some(({ host, port }) => ports.has(port) && mayBeThisMachine(host)))
    throw refused('this is a local address of the agent itself, so every call would loop');
}

/**
 * Refuses the daemon's own API: calls from the network would otherwise arrive at it as local ones.
 * Every spelling counts: `localhost`, `127.0.0.0/8`, mapped addresses, names that resolve to this machine.
 * @throws SvcError `bad_service_address`
 */
export async function rejectOwnApi(service: ServiceAddress, own: OwnApi): Promise<void> {
  for (const place of addressesOf(service)) await refuseApiAt(place, own);
}

/** Every address that a bound service has: one, or that of its calls and that of its tunnels. */
export function addressesOf(service: ServiceAddress): readonly Address[] {
  const { host, port, tunnels } = service;
  const isApart = tunnels !== null && (tunnels.host !== host || tunnels.port !== port);
  return isApart ? [service, tunnels] : [service];
}

async function refuseApiAt(service: Address, own: OwnApi): Promise<void> {
  const api = own.api();
  if (api === null || api.port !== service.port) return;
  const local = new Set(own.interfaces().map(canonicalIp));
  const isOurs = (host: string): boolean => mayBeThisMachine(host) || local.has(canonicalIp(host));
  const isName = canonicalIp(service.host) === null && !isLoopbackHost(service.host);
  const candidates = isName ? await own.lookup(service.host).catch(() => []) : [service.host];
  if (candidates.some(isOurs)) throw refused('this is the API address of the daemon');
}
