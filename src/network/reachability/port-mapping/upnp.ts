/** Asks a router for ports by UPnP: the Internet Gateway Device, versions 1 and 2. */
import { createSocket } from 'node:dgram';
import { request } from 'node:http';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { abortError, deadline } from '../../../foundation/deadline.ts';
import { MAX_PORT } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import type { GrantedPort, PortGrantor } from './gateway.ts';

/* Finds routers that speak UPnP in our own network (UPnP Device Architecture 2.0, 1.3.2 and 1.3.3). */

const SSDP: Address = { host: '239.255.255.250', port: 1900 };
/** How long answers are awaited, and how long routers may take for theirs at most: milliseconds, seconds. */
const SEARCH_MS = 3000;
const MAX_DELAY_S = 2;
/** How often the question is sent, as packets get lost, and how far apart, milliseconds. */
const SEARCHES = 2;
const SEARCH_AGAIN_MS = 500;
/** Answers that are read, and routers that are looked at. */
const MAX_ANSWERS = 64;
const MAX_ROUTERS = 4;
/** Longest answer that is read, bytes. */
const MAX_ANSWER_BYTES = 2048;
const TARGETS = [1, 2].map((version) => `urn:schemas-upnp-org:device:InternetGatewayDevice:${version}`);

function searchFor(target: string): string {
  const lines = ['M-SEARCH * HTTP/1.1', 'HOST: 239.255.255.250:1900', 'MAN: "ssdp:discover"', `MX: ${MAX_DELAY_S}`];
  return `${[...lines, `ST: ${target}`].join('\r\n')}\r\n\r\n`;
}

/** Where a router has its description, from its answer to a search; null for any other text. */
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
 * The URL in a text of a router, if it leads to that router itself: no other host, no password, plain HTTP. What a
 * router says may lead to no other machine of this network, and to no service of this one.
 * @param host the address that the text came from
 */
export function urlAt(text: string, host: string, base?: URL): URL | null {
  const url = URL.parse(text, base);
  if (url === null || url.protocol !== 'http:' || url.hostname !== host) return null;
  return url.username === '' && url.password === '' ? url : null;
}

interface SearchOptions {
  /** Our address in the network that is searched. */
  readonly ownHost: string;
  /** Where the search is sent; only tests choose another. */
  readonly ssdp?: Address;
  /** True for an address in our own network that may be a router. */
  readonly mayBeRouter: (host: string) => boolean;
}

/** Where routers have their descriptions, each router once; ends at the first one, or when the time is up. */
export async function searchRouters(clock: Clock, options: SearchOptions, signal: AbortSignal): Promise<URL[]> {
  const { ownHost, ssdp = SSDP, mayBeRouter } = options;
  const found = new Map<string, URL>();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = createSocket('udp4');
  const end = (): void => resolve();
  const search = (): void => {
    for (const target of TARGETS) socket.send(searchFor(target), ssdp.port, ssdp.host);
  };
  let answers = 0;
  const timers = [clock.after(SEARCH_MS, end)];
  socket.on('error', (cause) =>
    reject(new SvcError('connect_failed', { message: 'No router can be searched here.', cause })),
  );
  socket.on('message', (datagram, { address }) => {
    const location = mayBeRouter(address) ? decodeSearchAnswer(datagram) : null;
    const url = location === null ? null : urlAt(location, address);
    if (url !== null && found.size < MAX_ROUTERS) found.set(address, url);
    // The others that answer have until the next turn of the search.
    if (++answers >= MAX_ANSWERS) end();
    else if (url !== null && found.size === 1) timers.push(clock.after(SEARCH_AGAIN_MS, end));
  });
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  socket.bind(0, ownHost, () => {
    if (signal.aborted) return;
    socket.setMulticastInterface(ownHost);
    search();
    for (let i = 1; i < SEARCHES; i++) timers.push(clock.after(i * SEARCH_AGAIN_MS, search));
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

/* HTTP to a router: one request, one answer of a bounded size, no redirects, no second host. */

/** Longest answer of a router that is read, bytes. */
const MAX_ROUTER_ANSWER_BYTES = 128 * 1024;
/** How long a router may take for one, milliseconds. */
const ROUTER_ANSWER_MS = 5000;

interface RouterRequest {
  readonly url: URL;
  /** Sent with POST; GET without. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface RouterAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Asks a router; what it answers is a stranger's text.
 * @throws SvcError `connect_failed` where it does not answer or says too much, `timeout`, `cancelled`
 */
export async function askRouter(
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
      if (bytes > MAX_ROUTER_ANSWER_BYTES) reject(new RangeError('The answer is too long.'));
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
    throw new SvcError('connect_failed', { message: 'The router does not answer as it should.', cause });
  } finally {
    sent.destroy();
  }
}

/**
 * As much XML as routers' descriptions and answers need: elements by their local name, and the text in them. Not a
 * parser: no entity but the five, no document type, nothing is fetched. Time grows with the length of the text alone.
 */

/** A tag, opening or closing, with or without a prefix and attributes; names and attributes are bounded. */
const TAG = /<(\/?)(?:[A-Za-z_][\w.-]{0,40}:)?([A-Za-z_][\w.-]{0,80})(?:\s[^<>]{0,500})?\/?>/g;
const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
};

/** What stands between the tags of each element of that name, from outermost to its own closing tag; at most `max`. */
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

/** The text of the first element of that name, without blanks around it; null without one, and where it has others in it. */
export function elementText(xml: string, name: string): string | null {
  const [inner] = elementsOf(xml, name, 1);
  if (inner === undefined || inner.includes('<')) return null;
  return inner.replaceAll(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity).trim();
}

/** Text as it may stand in an element. */
export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/* What routers say and are told in UPnP (WANIPConnection:1 and :2, WANPPPConnection:1). Pure. */

const SERVICE = 'urn:schemas-upnp-org:service:';
/** The best first: the first one can choose a port itself. */
const SERVICE_TYPES = ['WANIPConnection:2', 'WANIPConnection:1', 'WANPPPConnection:1'].map((type) => SERVICE + type);
const CHOOSING_TYPE = SERVICE_TYPES[0];
/** Services of a description that are looked at. */
const MAX_DESCRIBED_SERVICES = 64;

/** Errors that are answered with another request (WANIPConnection:2, 2.5.16). */
export const UPNP_ERRORS = { conflict: 718, onlyPermanent: 725 } as const;

export interface WanService {
  readonly type: string;
  /** Where it takes requests, as the router says it: relative, or a URL. */
  readonly control: string;
  /** True where it gives another port if the one that was asked for is taken. */
  readonly chooses: boolean;
}

/** The service of a router's description that maps ports; null where it has none. */
export function wanServiceIn(description: string): WanService | null {
  const services = elementsOf(description, 'service', MAX_DESCRIBED_SERVICES).map((xml) => ({
    type: elementText(xml, 'serviceType'),
    control: elementText(xml, 'controlURL'),
  }));
  for (const type of SERVICE_TYPES) {
    const control = services.find((service) => service.type === type)?.control ?? null;
    if (control !== null) return { type, control, chooses: type === CHOOSING_TYPE };
  }
  return null;
}

/** A request of SOAP; the order of the arguments counts for some routers. */
export function soapRequest(type: string, action: string, args: Readonly<Record<string, string | number>>): string {
  const members = Object.entries(args).map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`);
  return [
    '<?xml version="1.0"?>',
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">',
    `<s:Body><u:${action} xmlns:u="${type}">${members.join('')}</u:${action}></s:Body></s:Envelope>`,
  ].join('\r\n');
}

/** The code of an error that a router answers; null where it answers none. */
export function faultIn(answer: string): number | null {
  const text = elementText(answer, 'errorCode');
  return text !== null && /^\d{1,5}$/.test(text) ? Number(text) : null;
}

/** The IP address in the answer to GetExternalIPAddress; null without one. */
export function externalHostIn(answer: string): string | null {
  return canonicalIp(elementText(answer, 'NewExternalIPAddress') ?? '');
}

/** The port in the answer to AddAnyPortMapping; null without one. */
export function reservedPortIn(answer: string): number | null {
  const text = elementText(answer, 'NewReservedPort') ?? '';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port > 0 && port <= MAX_PORT ? port : null;
}

/** Outer ports that are asked for, one after the other, where they are taken. */
const MAX_PORTS_TRIED = 4;
/** Outer ports by chance are this one or above: those below belong to services. */
const FIRST_CHANCE_PORT = 1024;
/** Shown in the list of the router. */
const DESCRIPTION = 'svcd';

interface UpnpOptions {
  readonly ownHost: string;
  /** Where routers are searched; only tests choose another than the multicast address. */
  readonly ssdp?: Address;
  /** True for an address in our own network that may be a router. */
  readonly mayBeRouter: (host: string) => boolean;
}

type Arguments = Readonly<Record<string, string | number>>;

/** What a router answered: its text, or the code of its error. */
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
   * Finds a router; null where none answers that maps ports.
   * @throws SvcError `connect_failed` where nothing can be searched here
   */
  static async find(
    options: UpnpOptions,
    clock: Clock,
    random: () => number,
    signal: AbortSignal,
  ): Promise<UpnpGrantor | null> {
    for (const url of await searchRouters(clock, options, signal)) {
      const { status, text } = await askRouter(clock, { url }, signal).catch(() => ({
        status: 0,
        text: '',
      }));
      const service = status === 200 ? wanServiceIn(text) : null;
      const control = service === null ? null : urlAt(service.control, url.hostname, url);
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
    const address = await this.#act('GetExternalIPAddress', {}, signal);
    const host = 'text' in address ? externalHostIn(address.text) : null;
    if (host === null) throw refused('it has no outer address');
    const port = await this.#map(internalPort, suggestedPort, lifetimeS, signal);
    return { external: { host, port }, lifetimeS };
  }

  async release(_internalPort: number, externalPort: number, signal: AbortSignal): Promise<void> {
    const args = { NewRemoteHost: '', NewExternalPort: externalPort, NewProtocol: 'UDP' };
    const answer = await this.#act('DeletePortMapping', args, signal);
    if ('fault' in answer) throw refused(`error ${answer.fault}`);
  }

  async #map(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<number> {
    let port = suggestedPort;
    let lease = lifetimeS;
    let chooses = this.#service.chooses;
    let fault = 0;
    // Each turn changes one thing that the router did not like.
    for (let tries = 0; tries < MAX_PORTS_TRIED; tries++) {
      const args = this.#mappingOf(internalPort, port, lease);
      const answer = await this.#act(chooses ? 'AddAnyPortMapping' : 'AddPortMapping', args, signal);
      if ('text' in answer) return (chooses ? reservedPortIn(answer.text) : null) ?? port;
      ({ fault } = answer);
      if (fault === UPNP_ERRORS.onlyPermanent && lease > 0) lease = 0;
      else if (chooses) chooses = false;
      else if (fault === UPNP_ERRORS.conflict)
        port = FIRST_CHANCE_PORT + Math.floor(this.#random() * (MAX_PORT + 1 - FIRST_CHANCE_PORT));
      else break;
    }
    throw refused(`error ${fault}`);
  }

  /** The arguments of a mapping, in the order of the standard. */
  #mappingOf(internalPort: number, externalPort: number, lease: number): Arguments {
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

  async #act(action: string, args: Arguments, signal: AbortSignal): Promise<Answer> {
    const { type } = this.#service;
    const headers = { 'Content-Type': 'text/xml; charset="utf-8"', SOAPAction: `"${type}#${action}"` };
    const request = { url: this.#control, body: soapRequest(type, action, args), headers };
    const { status, text } = await askRouter(this.#clock, request, signal);
    return status === 200 ? { text } : { fault: faultIn(text) ?? status };
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router refuses a port by UPnP: ${reason}.` });
}
