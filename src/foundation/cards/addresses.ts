/**
 * Rewrites the addresses in a card. A card that arrives over svcd describes one bound service. Its interfaces are that
 * service, under any name of the service's machine, and are rewritten to one address. All other addresses are rejected,
 * so that a card cannot send a program or its credentials to an address that its author chose.
 */
import { type Address, hostOfUrl, isEveryInterface, isLoopbackHost, isPublicHost } from '../address.ts';
import type { Aid } from '../identity/aid.ts';
import { isObject } from '../json.ts';
import { badCard, type Card } from './card.ts';

/** URL scheme of agents: `svc://aid1…/path`. */
const AGENT_SCHEME = 'svc://';
/** Maximum length of an address, in characters. */
const MAX_ADDRESS_CHARS = 2048;
const WEB_SCHEMES = /^(?:https?|wss?|grpcs?):\/\//i;
/** Base for relative addresses. The host does not exist. */
const CARD_BASE = 'http://agent.invalid';
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443 };

/** The bound service of an agent: its addresses for calls and for tunnels. */
export interface CardService extends Address {
  /** Receives HTTP/2 without an upgrade, which gRPC uses; null if there is none. */
  readonly tunnels: Address | null;
}

/** The agent that the card belongs to, and the new base of its addresses. */
export interface CardPlace {
  readonly aid: Aid;
  /** The bound service. If null, it is unknown, and every port of its machine is accepted. */
  readonly service: CardService | null;
  /** Without a path: `http://127.0.0.1:40123`, or `svc://aid1…`. */
  readonly to: string;
}

/** A parsed address, written with a scheme, or as host and port as in gRPC. */
interface ReadAddress {
  readonly url: URL;
  readonly isBare: boolean;
  /** Path and query as written; empty if there were none. */
  readonly path: string;
}

function hasPath(text: string): boolean {
  return /[/?#\\]/.test(text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, ''));
}

/** Parses the address of a service; null if it is invalid or ambiguous. */
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

/** The host without a trailing dot. */
function hostOf(url: URL): string {
  return hostOfUrl(url).replace(/\.$/, '');
}

/** True for a loopback host or the unspecified address. */
function isThisMachine(host: string): boolean {
  return isLoopbackHost(host) || isEveryInterface(host);
}

/** The address for an interface. Many services have a separate port for gRPC. */
function placeOf(service: CardService, binding: unknown): Address {
  return binding === 'GRPC' ? (service.tunnels ?? service) : service;
}

/** True if an address is that of the bound service. */
function isService(url: URL, service: CardPlace['service'], binding: unknown): boolean {
  const host = hostOf(url);
  if (service === null) return isThisMachine(host);
  const place = placeOf(service, binding);
  return portOf(url) === place.port && (host === place.host.toLowerCase() || isThisMachine(host));
}

/** Path and query of a relative address; null if it has another origin. */
function pathFrom(text: string): string | null {
  const url = URL.parse(text, CARD_BASE);
  return url?.origin === CARD_BASE ? url.pathname + url.search : null;
}

/** Path and query of an address of the agent; null for other addresses. */
function pathInAgent(text: string, { aid }: CardPlace): string | null {
  // Relative to the location of the card.
  if (/^\/(?!\/)[!-~]*$/.test(text) && !text.includes('\\') && text.length <= MAX_ADDRESS_CHARS) return pathFrom(text);
  if (!text.toLowerCase().startsWith(AGENT_SCHEME)) return null;
  const [, whom = '', path = ''] = /^([^/?#]*)(.*)$/s.exec(text.slice(AGENT_SCHEME.length)) ?? [];
  if (whom !== aid)
    throw badCard('swapped', 'an address in it belongs to another agent', { details: { address: shown(text) } });
  return path === '' ? '' : pathFrom(path);
}

/** The part of an address that is safe for errors and logs. */
function shown(text: string): string {
  const url = URL.parse(text);
  return (url === null ? text : `${url.protocol}//${url.host}`).slice(0, 100);
}

function foreign(text: string, where: string): Error {
  const url = readAddress(text)?.url ?? URL.parse(text) ?? URL.parse(text, CARD_BASE);
  const isSpecial = url !== null && url.host !== '' && !isPublicHost(url);
  const details = { address: shown(text), where };
  return isSpecial
    ? badCard('special_address', `"${where}" contains ${details.address}, which is not the agent's bound service`, {
        details,
      })
    : badCard('foreign_address', `"${where}" contains ${details.address}, which is not reachable over svcd`, {
        details,
      });
}

/** The new address of an interface. @throws SvcError `bad_card` if it is not the bound service */
function rewriteInterface(text: unknown, where: string, place: CardPlace, binding: unknown): string {
  if (typeof text !== 'string') throw badCard('not_a_card', `"${where}" is not a text`);
  const inAgent = pathInAgent(text, place);
  const read = inAgent === null ? readAddress(text) : null;
  if (inAgent === null && (read === null || !isService(read.url, place.service, binding))) throw foreign(text, where);
  const path = inAgent ?? read?.path ?? '';
  // gRPC clients expect host and port without a scheme.
  const isBare = read?.isBare ?? (path === '' && binding === 'GRPC');
  return `${isBare ? place.to.replace(/^https?:\/\//, '') : place.to}${path}`;
}

/** An interface of a card that is not the bound service. */
export interface SkippedInterface {
  /** Its protocol, such as `GRPC`; null if the card does not say. */
  readonly binding: string | null;
  readonly host: string;
  readonly port: number;
  /** The port of the bound service for this protocol. */
  readonly servicePort: number;
}

/** Describes an interface on another port of the service's machine; null for other addresses. */
function otherInterface(text: unknown, { service }: CardPlace, binding: unknown): SkippedInterface | null {
  const read = typeof text === 'string' ? readAddress(text) : null;
  if (read === null || service === null || !isThisMachine(hostOf(read.url))) return null;
  const [port, servicePort] = [portOf(read.url), placeOf(service, binding).port];
  const known = typeof binding === 'string' ? binding : null;
  return port === servicePort ? null : { binding: known, host: hostOf(read.url), port, servicePort };
}

/** Card members that are lists of interfaces, each with a `url`. */
const INTERFACE_LISTS: ReadonlySet<string> = new Set([
  'supportedInterfaces',
  'supported_interfaces',
  'additionalInterfaces',
  'additional_interfaces',
  'remotes',
  'transports',
]);
/** Members with the protocol of an interface. */
const BINDINGS = ['protocolBinding', 'protocol_binding', 'transport', 'type'];
/** Members with the address of an interface. */
const INTERFACE_ADDRESSES = ['url', 'endpoint'];

function bindingOf(one: Card): unknown {
  return BINDINGS.map((key) => one[key]).find((value) => typeof value === 'string');
}

class AddressRewriter {
  readonly #place: CardPlace;
  /** Omitted interfaces, which belong to other programs. */
  readonly skipped: SkippedInterface[] = [];
  /** Number of interfaces that are the bound service. */
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
    const rewritten = rewriteInterface(value, where, this.#place, binding);
    this.own++;
    return rewritten;
  }

  #list(list: unknown, where: string): unknown[] {
    if (!Array.isArray(list)) throw badCard('not_a_card', `"${where}" is not a list`);
    return list.flatMap((item: unknown, index): unknown[] => {
      const at = `${where}[${index}]`;
      if (!isObject(item)) throw badCard('not_a_card', `"${at}" is not an object`);
      const [other] = INTERFACE_ADDRESSES.flatMap(
        (key) => otherInterface(item[key], this.#place, bindingOf(item)) ?? [],
      );
      if (other === undefined) return [this.#interface(item, at)];
      this.skipped.push(other);
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

  /** Any other member, such as documentation or login URLs. */
  #member(value: unknown, key: string, where: string): unknown {
    if (Array.isArray(value)) return value.map((item, index) => this.#member(item, key, `${where}[${index}]`));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, this.#member(one, k, `${where}.${k}`)]));
    // An identifier, such as that of an extension, is compared but never requested.
    if (typeof value !== 'string' || key === 'uri' || !/(?:ur[li]|endpoint)$/i.test(key)) return value;
    return this.#otherText(value, where);
  }

  /** Keeps public addresses, rewrites service addresses and rejects all others. */
  #otherText(text: string, where: string): string {
    const inAgent = text.toLowerCase().startsWith(AGENT_SCHEME) ? pathInAgent(text, this.#place) : null;
    if (inAgent !== null) return `${this.#place.to}${inAgent}`;
    // Parses it as a client would: URL parsers ignore tabs and missing slashes.
    const url = URL.parse(text) ?? URL.parse(text, CARD_BASE);
    if (url === null || url.origin === CARD_BASE || !(url.protocol in DEFAULT_PORTS)) return text;
    const isPlain = url.username === '' && url.password === '';
    if (isPlain && isPublicHost(url)) return text;
    const read = readAddress(text);
    if (read === null || !isService(read.url, this.#place.service, undefined)) throw foreign(text, where);
    return `${this.#place.to}${read.path}`;
  }
}

/** A rewritten card and the interfaces that were omitted. */
export interface RewrittenCard {
  readonly card: Card;
  readonly skipped: readonly SkippedInterface[];
}

/**
 * Rewrites the agent's addresses in a card to `place.to`. Interfaces on other ports of the service's machine belong to
 * other programs. They are omitted if at least one interface is the service.
 * @throws SvcError `bad_card` with `foreign_address`, `special_address`, `swapped`, `not_a_card`
 */
export function rewriteAddresses(card: Card, place: CardPlace): RewrittenCard {
  const rewriter = new AddressRewriter(place);
  const rewritten = rewriter.card(card);
  if (rewriter.own > 0) return { card: rewritten, skipped: rewriter.skipped };
  if (rewriter.skipped.length > 0) throw badCard('special_address', 'no interface uses the port of the bound service');
  return { card: rewritten, skipped: [] };
}
