/** Finds routers that speak UPnP in our own network (UPnP Device Architecture 2.0, 1.3.2 and 1.3.3). */
import { createSocket } from 'node:dgram';
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { SvcError } from '../../../foundation/errors.ts';

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
