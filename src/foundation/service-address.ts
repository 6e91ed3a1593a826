/** Addresses of bound services, the values of `service_tcp`. */
import { type Address, isLoopbackHost, mayBeThisMachine, parseAddress } from './address.ts';
import { MAX_SERVICE_ADDRESS_CHARS } from './domain/agents.ts';
import { SvcError } from './errors.ts';
import type { Aid } from './identity/aid.ts';
import { canonicalIp } from './ip.ts';

export interface ServiceAddress extends Address {
  readonly scheme: 'tcp' | 'http' | 'https';
  /** True if the service accepts HTTP calls, each with the identity of the caller. */
  readonly acceptsCalls: boolean;
  /**
   * Where tunnels connect to. Tunnel bytes are arbitrary and may include a header that names a caller. The port can
   * differ from that of calls. Null: no tunnels.
   */
  readonly tunnels: Address | null;
  /** False for `https+insecure`: any certificate is accepted. */
  readonly verifyCertificate: boolean;
  /** `http+proven`: the program proves on each connection that it is the bound program. */
  readonly provesItself: boolean;
  /** The canonical text, without blanks and trailing slash. */
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
 * Parses the address of a service and the protocols that it accepts. `http://host:port` and `https://host:port` accept
 * calls, `tcp://host:port` accepts tunnels. `host:port`, `http+tcp://` and `https+tcp://` accept both. The certificate
 * of `https+insecure://` and `https+insecure+tcp://` is not verified, see docs/decisions/0022. Calls and tunnels can
 * use different ports: `http://host:port,tcp://host:port`, see docs/decisions/0044. A program behind `http+proven://`
 * proves itself, see docs/protocol-calls.md.
 * @throws SvcError `bad_service_address`
 */
export function parseServiceAddress(input: string): ServiceAddress {
  if (input.trim().length > MAX_SERVICE_ADDRESS_CHARS) throw refused('the text is too long');
  const [first = '', second, ...more] = input.split(',');
  const service = parseOne(first);
  if (second === undefined) return service;
  if (more.length > 0) throw refused('more than two addresses');
  const tunnels = parseOne(second);
  if (service.tunnels !== null || tunnels.acceptsCalls)
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
    acceptsCalls: tcp === undefined,
    tunnels: web === undefined || more?.toLowerCase() === '+tcp' ? address : null,
    verifyCertificate: scheme !== 'https+insecure',
    provesItself,
    text: prefix === '' ? rest : `${prefix}://${rest}`,
  };
}

export interface OwnApi {
  /** Address of the daemon's API; null if it serves none. An empty host means every interface. */
  api(): Address | null;
  /** The addresses of this machine's interfaces. */
  interfaces(): readonly string[];
  /** Resolves a host name; rejects if it has no address. */
  lookup(host: string): Promise<readonly string[]>;
  /** Ports of the local addresses of an agent on this machine. */
  localPorts?(aid: Aid): readonly number[];
}

/**
 * Rejects a local address of the agent itself, because each call would loop.
 * @throws SvcError `bad_service_address`
 */
export function rejectOwnLocalAddress(service: ServiceAddress, aid: Aid, own: OwnApi): void {
  const ports = new Set(own.localPorts?.(aid));
  if (addressesOf(service).some(({ host, port }) => ports.has(port) && mayBeThisMachine(host)))
    throw refused('this is a local address of the agent itself, so every call would loop');
}

/**
 * Rejects the daemon's own API, because calls from the network would reach it as local ones. All spellings are checked:
 * `localhost`, `127.0.0.0/8`, mapped addresses, and names that resolve to this machine.
 * @throws SvcError `bad_service_address`
 */
export async function rejectOwnApi(service: ServiceAddress, own: OwnApi): Promise<void> {
  for (const place of addressesOf(service)) await refuseApiAt(place, own);
}

/** All addresses of a bound service: one, or one for calls and one for tunnels. */
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
