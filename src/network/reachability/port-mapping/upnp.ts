/** Requests port mappings by UPnP: the Internet Gateway Device, versions 1 and 2. */
import { createSocket } from 'node:dgram';
import { request } from 'node:http';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortError, deadline } from '../../../foundation/deadline.ts';
import { MAX_PORT } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import type { GrantedPort, PortGrantor } from './gateway.ts';

/* Finds UPnP routers in this network (UPnP Device Architecture 2.0, 1.3.2 and 1.3.3). */

const SSDP: Address = { host: '239.255.255.250', port: 1900 };
/** How long to wait for answers (milliseconds), and the maximum delay that routers may choose (seconds). */
const SEARCH_MS = 3000;
const MAX_DELAY_S = 2;
/** How often the search is sent, because packets get lost, and the interval, milliseconds. */
const SEARCH_TRANSMISSIONS = 2;
const SEARCH_INTERVAL_MS = 500;
/** Maximum number of answers to read, and of routers to contact. */
const MAX_ANSWERS = 64;
const MAX_ROUTERS = 4;
/** Largest answer to read, bytes. */
const MAX_ANSWER_BYTES = 2048;
const TARGETS = [1, 2].map((version) => `urn:schemas-upnp-org:device:InternetGatewayDevice:${version}`);

function encodeSearch(target: string): string {
  const lines = ['M-SEARCH * HTTP/1.1', 'HOST: 239.255.255.250:1900', 'MAN: "ssdp:discover"', `MX: ${MAX_DELAY_S}`];
  return `${[...lines, `ST: ${target}`].join('\r\n')}\r\n\r\n`;
}

/** Extracts the URL of a router's description from its answer to a search; null for any other text. */
export function decodeSearchAnswer(datagram: Uint8Array): string | null {
  if (datagram.length > MAX_ANSWER_BYTES) return null;
  const [status = '', ...lines] = Buffer.from(datagram).toString('latin1').split('\r\n');
  if (!/^HTTP\/1\.[01] 200\b/.test(status)) return null;
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return TARGETS.includes(headers.get('st') ?? '') ? (headers.get('location') ?? null) : null;
}

/**
 * Parses a URL that a router sent. Returns null unless it leads to that router: same host, plain HTTP, no password. A
 * router must not make this node send requests to other machines or to local services.
 * @param host the address that the text was received from
 */
export function parseRouterUrl(text: string, host: string, base?: URL): URL | null {
  const url = URL.parse(text, base);
  if (url === null || url.protocol !== 'http:' || url.hostname !== host) return null;
  return url.username === '' && url.password === '' ? url : null;
}

interface SearchOptions {
  /** IPv4 address of this machine in the network to search. */
  readonly ownHost: string;
  /** Where to send the search; only tests change it. */
  readonly ssdp?: Address;
  /** True for an address in this network that may be a router. */
  readonly mayBeRouter: (host: string) => boolean;
}

/**
 * Searches for routers; returns the URLs of their descriptions, one for each router. Stops shortly after the first
 * answer, or when the time is up.
 */
export async function searchRouters(clock: Clock, options: SearchOptions, signal: AbortSignal): Promise<URL[]> {
  const { ownHost, ssdp = SSDP, mayBeRouter } = options;
  const found = new Map<string, URL>();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = createSocket('udp4');
  const end = (): void => resolve();
  const search = (): void => {
    for (const target of TARGETS) socket.send(encodeSearch(target), ssdp.port, ssdp.host);
  };
  let answers = 0;
  const timers = [clock.after(SEARCH_MS, end)];
  const fail = (cause: unknown): void =>
    reject(new SvcError('connect_failed', { message: 'Failed to search for UPnP routers.', cause }));
  socket.on('error', fail);
  socket.on('message', (datagram, { address }) => {
    const location = mayBeRouter(address) ? decodeSearchAnswer(datagram) : null;
    const url = location === null ? null : parseRouterUrl(location, address);
    if (url !== null && found.size < MAX_ROUTERS) found.set(address, url);
    // Give other routers until the next retransmission to answer.
    if (++answers >= MAX_ANSWERS) end();
    else if (url !== null && found.size === 1) timers.push(clock.after(SEARCH_INTERVAL_MS, end));
  });
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  socket.bind(0, ownHost, () => {
    if (signal.aborted) return;
    try {
      socket.setMulticastInterface(ownHost);
    } catch (error) {
      // This machine has just lost the address.
      return fail(error);
    }
    search();
    for (let i = 1; i < SEARCH_TRANSMISSIONS; i++) timers.push(clock.after(i * SEARCH_INTERVAL_MS, search));
  });
  try {
    await promise;
  } finally {
    for (const timer of timers) timer.cancel();
    signal.removeEventListener('abort', end);
    socket.close();
  }
  return [...found.values()];
}

/* HTTP to a router: one request, one answer of bounded size, no redirects, no other host. */

/** Largest answer to read, bytes. */
const MAX_ROUTER_ANSWER_BYTES = 128 * 1024;
/** Time for one request, milliseconds. */
const ROUTER_ANSWER_MS = 5000;

interface RouterRequest {
  readonly url: URL;
  /** Sent with POST; without a body the method is GET. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouterAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends a request to a router. The answer is untrusted.
 * @throws SvcError `connect_failed` if the router does not answer or its answer is too long, `timeout`, `cancelled`
 */
export async function requestRouter(
  clock: Clock,
  { url, body, headers = {} }: RouterRequest,
  signal: AbortSignal,
): Promise<RouterAnswer> {
  using limit = deadline(clock, ROUTER_ANSWER_MS, signal);
  const { promise, resolve, reject } = Promise.withResolvers<RouterAnswer>();
  const method = body === undefined ? 'GET' : 'POST';
  const sent = request(url, { method, headers: { ...headers, Connection: 'close' }, agent: false }, (answer) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    answer.on('error', reject);
    answer.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ROUTER_ANSWER_BYTES) reject(new RangeError("The router's answer is too long."));
      else chunks.push(chunk);
    });
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }));
  });
  sent.on('error', reject);
  const abort = (): void => reject(abortError(limit.signal));
  limit.signal.addEventListener('abort', abort, { once: true });
  if (limit.signal.aborted) abort();
  else sent.end(body);
  try {
    return await promise;
  } catch (cause) {
    if (cause instanceof SvcError) throw cause;
    throw new SvcError('connect_failed', { message: 'The router sent no valid answer.', cause });
  } finally {
    sent.destroy();
  }
}

/*
 * The part of XML that the descriptions and answers of routers need: elements by local name, and their text. This is
 * not a parser: only the five predefined entities, no document type, no fetches. Time is linear in the length of the
 * text.
 */

/** An opening or closing tag, with optional prefix and attributes. The lengths of names and attributes are bounded. */
const TAG = /<(\/?)(?:[A-Za-z_][\w.-]{0,40}:)?([A-Za-z_][\w.-]{0,80})(?:\s[^<>]{0,500})?\/?>/g;
const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
};

/** The contents of each outermost element with a name, at most `max` elements. */
export function elementsOf(xml: string, name: string, max: number): string[] {
  const found: string[] = [];
  let start = -1;
  let depth = 0;
  for (const match of xml.matchAll(TAG)) {
    const [tag, closing, local] = match;
    if (local !== name || tag.endsWith('/>')) continue;
    if (closing === '' && depth++ === 0) start = match.index + tag.length;
    if (closing === '/' && depth > 0 && --depth === 0) found.push(xml.slice(start, match.index));
    if (found.length === max) break;
  }
  return found;
}

/** The trimmed text of the first element with a name; null if there is none or if it contains elements. */
export function elementText(xml: string, name: string): string | null {
  const [inner] = elementsOf(xml, name, 1);
  if (inner === undefined || inner.includes('<')) return null;
  return inner.replaceAll(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity).trim();
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/* Requests to UPnP routers and their answers (WANIPConnection:1 and :2, WANPPPConnection:1). Pure. */

const SERVICE = 'urn:schemas-upnp-org:service:';
/** In order of preference: the first one can choose a free port. */
const SERVICE_TYPES = ['WANIPConnection:2', 'WANIPConnection:1', 'WANPPPConnection:1'].map((type) => SERVICE + type);
const CHOOSING_TYPE = SERVICE_TYPES[0];
/** Maximum number of services to read from a description. */
const MAX_DESCRIBED_SERVICES = 64;

/** Errors after which another request may succeed (WANIPConnection:2, 2.5.16). */
export const UPNP_ERRORS = { conflict: 718, onlyPermanent: 725 } as const;

export interface WanService {
  readonly type: string;
  /** The control URL as the router sent it; may be relative. */
  readonly control: string;
  /** True if the service maps another port if the requested one is in use. */
  readonly choosesPort: boolean;
}

/** Finds the port mapping service in a router's description; null if there is none. */
export function findWanService(description: string): WanService | null {
  const services = elementsOf(description, 'service', MAX_DESCRIBED_SERVICES).map((xml) => ({
    type: elementText(xml, 'serviceType'),
    control: elementText(xml, 'controlURL'),
  }));
  for (const type of SERVICE_TYPES) {
    const control = services.find((service) => service.type === type)?.control ?? null;
    if (control !== null) return { type, control, choosesPort: type === CHOOSING_TYPE };
  }
  return null;
}

/** Builds a SOAP request. Some routers depend on the order of the arguments. */
export function soapRequest(type: string, action: string, args: Readonly<Record<string, string | number>>): string {
  const members = Object.entries(args).map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`);
  return [
    '<?xml version="1.0"?>',
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">',
    `<s:Body><u:${action} xmlns:u="${type}">${members.join('')}</u:${action}></s:Body></s:Envelope>`,
  ].join('\r\n');
}

/** The error code in a router's answer; null if it is not an error. */
export function parseFault(answer: string): number | null {
  const text = elementText(answer, 'errorCode');
  return text !== null && /^\d{1,5}$/.test(text) ? Number(text) : null;
}

/** The IP address in the answer to GetExternalIPAddress; null if there is none. */
export function parseExternalHost(answer: string): string | null {
  return canonicalIp(elementText(answer, 'NewExternalIPAddress') ?? '');
}

/** The port in the answer to AddAnyPortMapping; null if there is none. */
export function parseReservedPort(answer: string): number | null {
  const text = elementText(answer, 'NewReservedPort') ?? '';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port > 0 && port <= MAX_PORT ? port : null;
}

/** Maximum number of requests for one mapping. */
const MAX_PORTS_TRIED = 4;
/** Lowest random external port. Lower ports belong to well-known services. */
const FIRST_RANDOM_PORT = 1024;
/** Shown in the router's list of mappings. */
const DESCRIPTION = 'svcd';

interface UpnpOptions {
  readonly ownHost: string;
  /** Where to send the search; only tests change the multicast address. */
  readonly ssdp?: Address;
  /** True for an address in this network that may be a router. */
  readonly mayBeRouter: (host: string) => boolean;
}

type Arguments = Readonly<Record<string, string | number>>;

/** A router's answer: its text, or an error code. */
type Answer = { readonly text: string } | { readonly fault: number };

export class UpnpGrantor implements PortGrantor {
  readonly protocol = 'upnp';
  readonly #service: WanService;
  readonly #control: URL;
  readonly #ownHost: string;
  readonly #clock: Clock;
  readonly #random: () => number;

  private constructor(service: WanService, control: URL, ownHost: string, clock: Clock, random: () => number) {
    this.#service = service;
    this.#control = control;
    this.#ownHost = ownHost;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Finds a router that maps ports; null if none answers.
   * @throws SvcError `connect_failed` if the search cannot be sent
   */
  static async find(
    options: UpnpOptions,
    clock: Clock,
    random: () => number,
    signal: AbortSignal,
  ): Promise<UpnpGrantor | null> {
    for (const url of await searchRouters(clock, options, signal)) {
      const { status, text } = await requestRouter(clock, { url }, signal).catch(() => ({
        status: 0,
        text: '',
      }));
      const service = status === 200 ? findWanService(text) : null;
      const control = service === null ? null : parseRouterUrl(service.control, url.hostname, url);
      if (service !== null && control !== null)
        return new UpnpGrantor(service, control, options.ownHost, clock, random);
    }
    return null;
  }

  async grant(
    internalPort: number,
    suggestedPort: number,
    lifetimeS: number,
    signal: AbortSignal,
  ): Promise<GrantedPort> {
    const address = await this.#invoke('GetExternalIPAddress', {}, signal);
    const host = 'text' in address ? parseExternalHost(address.text) : null;
    if (host === null) throw refused('it has no external address');
    const port = await this.#map(internalPort, suggestedPort, lifetimeS, signal);
    return { external: { host, port }, lifetimeS };
  }

  async release(_internalPort: number, externalPort: number, signal: AbortSignal): Promise<void> {
    const args = { NewRemoteHost: '', NewExternalPort: externalPort, NewProtocol: 'UDP' };
    const answer = await this.#invoke('DeletePortMapping', args, signal);
    if ('fault' in answer) throw refused(`error ${answer.fault}`);
  }

  async #map(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<number> {
    let port = suggestedPort;
    let lease = lifetimeS;
    let choosesPort = this.#service.choosesPort;
    let fault = 0;
    // Each attempt changes one argument that the router rejected.
    for (let tries = 0; tries < MAX_PORTS_TRIED; tries++) {
      const args = this.#mappingArguments(internalPort, port, lease);
      const answer = await this.#invoke(choosesPort ? 'AddAnyPortMapping' : 'AddPortMapping', args, signal);
      if ('text' in answer) return (choosesPort ? parseReservedPort(answer.text) : null) ?? port;
      ({ fault } = answer);
      if (fault === UPNP_ERRORS.onlyPermanent && lease > 0) lease = 0;
      else if (choosesPort) choosesPort = false;
      else if (fault === UPNP_ERRORS.conflict)
        port = FIRST_RANDOM_PORT + Math.floor(this.#random() * (MAX_PORT + 1 - FIRST_RANDOM_PORT));
      else break;
    }
    throw refused(`error ${fault}`);
  }

  /** The arguments of a mapping, in the order of the standard. */
  #mappingArguments(internalPort: number, externalPort: number, lease: number): Arguments {
    return {
      NewRemoteHost: '',
      NewExternalPort: externalPort,
      NewProtocol: 'UDP',
      NewInternalPort: internalPort,
      NewInternalClient: this.#ownHost,
      NewEnabled: 1,
      NewPortMappingDescription: DESCRIPTION,
      NewLeaseDuration: lease,
    };
  }

  async #invoke(action: string, args: Arguments, signal: AbortSignal): Promise<Answer> {
    const { type } = this.#service;
    const headers = { 'Content-Type': 'text/xml; charset="utf-8"', SOAPAction: `"${type}#${action}"` };
    const request = { url: this.#control, body: soapRequest(type, action, args), headers };
    const { status, text } = await requestRouter(this.#clock, request, signal);
    return status === 200 ? { text } : { fault: parseFault(text) ?? status };
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router rejected the UPnP request: ${reason}.` });
}
