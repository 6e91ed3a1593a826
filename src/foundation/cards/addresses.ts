/**
 * The addresses in a card, and where they may lead. A card that comes over svcd is one bound service's: its interfaces
 * are that service, whatever its machine calls itself there, and lead to one place. Everything else is refused, so that
 * no card sends a program, or its credentials, to an address that its writer has chosen.
 */
import { type Address, hostOfUrl, isEveryInterface, isLoopbackHost } from '../address.ts';
import type { Aid } from '../identity/aid.ts';
import { isObject } from '../json.ts';
import { isPublicHost } from '../public-host.ts';
import { badCard } from './bad-card.ts';
import type { Card } from './card.ts';

/** Scheme of the address of an agent, wherever it is: `svc://aid1…/path`. */
const AGENT_SCHEME = 'svc://';
/** Longest address that is looked at, characters. */
const MAX_ADDRESS_CHARS = 2048;
const WEB_SCHEMES = /^(?:https?|wss?|grpcs?):\/\//i;
/** Where relative addresses start from: a host that is nobody's. */
const CARD_BASE = 'http://agent.invalid';
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443 };

/** What an agent is bound to: where its calls go, and where its tunnels. */
export interface CardService extends Address {
  /** HTTP/2 without an upgrade, which gRPC speaks, goes there; null: nowhere. */
  readonly tunnels: Address | null;
}

/** Whose card it is, and where its own addresses lead from now on. */
export interface CardPlace {
  readonly aid: Aid;
  /** What the agent is bound to; null where that is not known: then every port of its machine may be it. */
  readonly service: CardService | null;
  /** Without a path: `http://127.0.0.1:40123`, or `svc://aid1…`. */
  readonly to: string;
}

/** How an address is written: with a scheme, or as a host and a port, as gRPC has it. */
interface ReadAddress {
  readonly url: URL;
  readonly isBare: boolean;
  /** Path and query as they were written; empty where there was none. */
  readonly path: string;
}

function hasPath(text: string): boolean {
  return /[/?#\\]/.test(text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, ''));
}

/** An address of a service as URL parsers see it; null for what they could read in two ways, or not at all. */
function readAddress(text: string): ReadAddress | null {
  if (text.length > MAX_ADDRESS_CHARS || /[\s\\]/.test(text)) return null;
  const isBare = /^(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+):\d{1,5}$/i.test(text);
  if (!isBare && !WEB_SCHEMES.test(text)) return null;
  const url = URL.parse(isBare ? `http://${text}` : text.replace(/^grpc(s?):/i, 'http$1:'));
  if (url === null || url.username !== '' || url.password !== '') return null;
  return { url, isBare, path: hasPath(text) ? url.pathname + url.search : '' };
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port);
}

/** A host without the dot that may stand behind a name. */
function hostOf(url: URL): string {
  return hostOfUrl(url).replace(/\.$/, '');
}

/** True where a host is what a machine calls itself, and be it every interface of it. */
function isThisMachine(host: string): boolean {
  return isLoopbackHost(host) || isEveryInterface(host);
}

/** Where requests of an interface go: gRPC has a port of its own at many services. */
function placeOf(service: CardService, binding: unknown): Address {
  return binding === 'GRPC' ? (service.tunnels ?? service) : service;
}

/** True where an address is that of the bound service. */
function isService(url: URL, service: CardPlace['service'], binding: unknown): boolean {
  const host = hostOf(url);
  if (service === null) return isThisMachine(host);
  const place = placeOf(service, binding);
  return portOf(url) === place.port && (host === place.host.toLowerCase() || isThisMachine(host));
}

/** Path and query of a relative address; null where it leads elsewhere. */
function pathFrom(text: string): string | null {
  const url = URL.parse(text, CARD_BASE);
  return url?.origin === CARD_BASE ? url.pathname + url.search : null;
}

/** Path and query of an address of the agent; null where it is none. */
function pathInAgent(text: string, { aid }: CardPlace): string | null {
  // Relative to wherever the card is.
  if (/^\/(?!\/)[!-~]*$/.test(text) && !text.includes('\\') && text.length <= MAX_ADDRESS_CHARS) return pathFrom(text);
  if (!text.toLowerCase().startsWith(AGENT_SCHEME)) return null;
  const [, whom = '', path = ''] = /^([^/?#]*)(.*)$/s.exec(text.slice(AGENT_SCHEME.length)) ?? [];
  if (whom !== aid)
    throw badCard('swapped', 'an address in it is of another agent', { details: { address: shown(text) } });
  return path === '' ? '' : pathFrom(path);
}

/** What may be said of an address: it goes into errors and logs. */
function shown(text: string): string {
  const url = URL.parse(text);
  return (url === null ? text : `${url.protocol}//${url.host}`).slice(0, 100);
}

function foreign(text: string, where: string): Error {
  const url = readAddress(text)?.url ?? URL.parse(text) ?? URL.parse(text, CARD_BASE);
  const isSpecial = url !== null && url.host !== '' && !isPublicHost(url);
  const details = { address: shown(text), where };
  return isSpecial
    ? badCard('special_address', `"${where}" leads to ${details.address}, which is not the agent's bound service`, {
        details,
      })
    : badCard('foreign_address', `"${where}" leads to ${details.address}, past svcd`, { details });
}

/** Where an interface of the service leads from now on. @throws SvcError `bad_card` where it is not the service's */
function ledInterface(text: unknown, where: string, place: CardPlace, binding: unknown): string {
  if (typeof text !== 'string') throw badCard('not_a_card', `"${where}" is no text`);
  const inAgent = pathInAgent(text, place);
  const read = inAgent === null ? readAddress(text) : null;
  if (inAgent === null && (read === null || !isService(read.url, place.service, binding))) throw foreign(text, where);
  const path = inAgent ?? read?.path ?? '';
  // Clients of gRPC take a host and a port.
  const isBare = read?.isBare ?? (path === '' && binding === 'GRPC');
  return `${isBare ? place.to.replace(/^https?:\/\//, '') : place.to}${path}`;
}

/** An interface of a card that leads to another program than the service. */
export interface SkippedInterface {
  /** What it speaks, such as `GRPC`; null where the card does not say. */
  readonly binding: string | null;
  readonly host: string;
  readonly port: number;
  /** The port that it would have to be. */
  readonly servicePort: number;
}

/** What is at another port of the service's machine; null for an address that is not. */
function besides(text: unknown, { service }: CardPlace, binding: unknown): SkippedInterface | null {
  const read = typeof text === 'string' ? readAddress(text) : null;
  if (read === null || service === null || !isThisMachine(hostOf(read.url))) return null;
  const [port, servicePort] = [portOf(read.url), placeOf(service, binding).port];
  const known = typeof binding === 'string' ? binding : null;
  return port === servicePort ? null : { binding: known, host: hostOf(read.url), port, servicePort };
}

/** Members of a card that are lists of interfaces, each with a `url`. */
const INTERFACE_LISTS: ReadonlySet<string> = new Set([
  'supportedInterfaces',
  'supported_interfaces',
  'additionalInterfaces',
  'additional_interfaces',
  'remotes',
  'transports',
]);
/** Members by which clients know what an interface speaks. */
const BINDINGS = ['protocolBinding', 'protocol_binding', 'transport', 'type'];
/** Members that are addresses of an interface. */
const INTERFACE_ADDRESSES = ['url', 'endpoint'];

function bindingOf(one: Card): unknown {
  return BINDINGS.map((key) => one[key]).find((value) => typeof value === 'string');
}

class AddressRewriter {
  readonly #place: CardPlace;
  /** Interfaces that were left out, as they are other programs'. */
  readonly left: SkippedInterface[] = [];
  /** Interfaces that are the service. */
  own = 0;

  constructor(place: CardPlace) {
    this.#place = place;
  }

  card(card: Card): Card {
    return Object.fromEntries(
      Object.entries(card).map(([key, value]): [string, unknown] => {
        if (INTERFACE_LISTS.has(key)) return [key, this.#list(value, key)];
        if (key === 'transport' && isObject(value)) return [key, this.#interface(value, key)];
        if (INTERFACE_ADDRESSES.includes(key)) return [key, this.#rewrite(value, key, card['preferredTransport'])];
        return [key, this.#member(value, key, key)];
      }),
    );
  }

  #rewrite(value: unknown, where: string, binding: unknown): string {
    const led = ledInterface(value, where, this.#place, binding);
    this.own++;
    return led;
  }

  #list(list: unknown, where: string): unknown[] {
    if (!Array.isArray(list)) throw badCard('not_a_card', `"${where}" is no list`);
    return list.flatMap((item: unknown, index): unknown[] => {
      const at = `${where}[${index}]`;
      if (!isObject(item)) throw badCard('not_a_card', `"${at}" is no object`);
      const [other] = INTERFACE_ADDRESSES.flatMap((key) => besides(item[key], this.#place, bindingOf(item)) ?? []);
      if (other === undefined) return [this.#interface(item, at)];
      this.left.push(other);
      return [];
    });
  }

  #interface(one: Card, where: string): Card {
    const binding = bindingOf(one);
    return Object.fromEntries(
      Object.entries(one).map(([key, value]): [string, unknown] => {
        const at = `${where}.${key}`;
        return [
          key,
          INTERFACE_ADDRESSES.includes(key) ? this.#rewrite(value, at, binding) : this.#member(value, key, at),
        ];
      }),
    );
  }

  /** Whatever else a card holds: where to read more, or to log in. */
  #member(value: unknown, key: string, where: string): unknown {
    if (Array.isArray(value)) return value.map((item, index) => this.#member(item, key, `${where}[${index}]`));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, this.#member(one, k, `${where}.${k}`)]));
    // A name, such as that of an extension: it is compared and not asked.
    if (typeof value !== 'string' || key === 'uri' || !/(?:ur[li]|endpoint)$/i.test(key)) return value;
    return this.#besides(value, where);
  }

  /** Public addresses stay, those of the service lead to it, and others have no place in what strangers send. */
  #besides(text: string, where: string): string {
    const inAgent = text.toLowerCase().startsWith(AGENT_SCHEME) ? pathInAgent(text, this.#place) : null;
    if (inAgent !== null) return `${this.#place.to}${inAgent}`;
    // As whoever follows it would read it: tabs and missing slashes are nothing to a parser of URLs.
    const url = URL.parse(text) ?? URL.parse(text, CARD_BASE);
    if (url === null || url.origin === CARD_BASE || !(url.protocol in DEFAULT_PORTS)) return text;
    const isPlain = url.username === '' && url.password === '';
    if (isPlain && isPublicHost(url)) return text;
    const read = readAddress(text);
    if (read === null || !isService(read.url, this.#place.service, undefined)) throw foreign(text, where);
    return `${this.#place.to}${read.path}`;
  }
}

/** A card whose addresses lead to one place, and which of its interfaces were left out. */
export interface RewrittenCard {
  readonly card: Card;
  readonly left: readonly SkippedInterface[];
}

/**
 * A card with its own addresses leading to `place.to`. Interfaces at other ports of the service's machine are left out
 * where one is there that is the service: they are other programs, which the agent is not.
 * @throws SvcError `bad_card` with `foreign_address`, `special_address`, `swapped`, `not_a_card`
 */
export function rewriteAddresses(card: Card, place: CardPlace): RewrittenCard {
  const leading = new AddressRewriter(place);
  const led = leading.card(card);
  if (leading.own > 0) return { card: led, left: leading.left };
  if (leading.left.length > 0)
    throw badCard('special_address', 'each of its interfaces is another port than that of the bound service');
  return { card: led, left: [] };
}
