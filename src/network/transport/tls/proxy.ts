/** HTTP proxies: which one leads to a host, and TCP connections through it (CONNECT, RFC 9110, 9.3.6). */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, getCACertificates } from 'node:tls';
import { type Address, formatAddress, hostOfUrl } from '../../../foundation/address.ts';
import { AUTO_PROXY, type Config, NO_PROXY } from '../../../foundation/config/schema.ts';
import { codeOf } from '../../../foundation/errors.ts';
import { canonicalIp, inIpv4Network } from '../../../foundation/ip.ts';
import { shellCommand } from '../../../foundation/programs.ts';
import { guard } from '../../../foundation/stream-listeners.ts';
import { HelperFailure } from '../borrowing.ts';
import { tlsFailure } from './failure.ts';
import { OUTER_TLS } from './wire.ts';

/** The setting, as messages name it. */
const PROXY_KEY = '"proxy"';
/** In order of preference, as other programs read them. */
export const PROXY_VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'] as const;
const EXCEPTION_VARIABLES = ['no_proxy', 'NO_PROXY'] as const;
/** For http:// only, so svcd does not use them. */
const PLAIN_VARIABLES = ['http_proxy', 'HTTP_PROXY'] as const;

/** Longest output of `proxy_command`, bytes, and its timeout, milliseconds. */
const MAX_CREDENTIALS_BYTES = 4096;
const COMMAND_TIMEOUT_MS = 10_000;
/** Timeout for a connection to the proxy itself, milliseconds: long enough for three attempts of the system. */
const PROXY_TCP_MS = 4_000;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Configuration keys. */
export type ProxySettings = Pick<Config, 'proxy' | 'proxy_command' | 'tls_ca'>;

/**
 * The PEM text of `tls_ca`; empty if it is not set.
 * @throws HelperFailure `certificate`
 */
export function readTlsCa(file: string): string {
  if (file === '') return '';
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new HelperFailure(
      'certificate',
      `The file of tls_ca cannot be read (${codeOf(cause)}). Correct the path.`,
      cause,
    );
  }
}

/** A proxy as the user gave it. */
interface ProxyPlace extends Address {
  readonly isSecure: boolean;
  /** `user:password`; null if the URL has none. */
  readonly credentials: string | null;
  /** For messages: the variable that names it, or `"proxy"`. */
  readonly setBy: string;
}

/** The first variable of a list that is set. */
function firstOf(env: Environment, names: readonly string[]): { readonly name: string; readonly value: string } {
  const name = names.find((one) => (env[one] ?? '') !== '') ?? '';
  return { name, value: env[name] ?? '' };
}

/**
 * Parses the URL of a proxy. `host:port` means `http://host:port`.
 * @param setBy where it is set, for the error
 * @throws HelperFailure `proxy_invalid`
 */
export function parseProxy(text: string, setBy: string = PROXY_KEY): ProxyPlace {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  const isSecure = url?.protocol === 'https:';
  if (url !== null && !isSecure && url.protocol !== 'http:')
    throw tlsFailure('the proxy URL has another scheme', { setBy, scheme: `${url.protocol}//` });
  // The parser accepts quotes in names.
  if (url === null || url.hostname === '' || /["']/.test(url.hostname))
    throw tlsFailure('the proxy URL is none', { setBy });
  const [user, password] = [url.username, url.password].map(decode);
  const credentials = user === '' && password === '' ? null : `${user}:${password}`;
  return { host: hostOfUrl(url), port: Number(url.port) || (isSecure ? 443 : 80), isSecure, credentials, setBy };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * True if `NO_PROXY` excludes a host: `*`, a name and its subdomains, an IP address or an IPv4 network, each with or
 * without a port.
 */
export function isExcepted({ host, port }: Address, exceptions: string): boolean {
  const name = host.toLowerCase();
  return exceptions.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true;
    if (canonicalIp(entry) !== null) return canonicalIp(entry) === name;
    const [, ipv6, plain = '', digits] = /^(?:\[(.*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(entry) ?? [];
    if (digits !== undefined && Number(digits) !== port) return false;
    const pattern = (ipv6 ?? plain).toLowerCase().replace(/^\*?\./, '');
    if (pattern === '') return false;
    if (canonicalIp(name) === null) return name === pattern || name.endsWith(`.${pattern}`);
    return canonicalIp(pattern) === name || (pattern.includes('/') && inIpv4Network(name, pattern));
  });
}

/** Finds the proxy for a host. Keeps its credentials, so that later connections need no new ones. */
export class Proxies {
  readonly #settings: () => ProxySettings;
  readonly #env: Environment;
  readonly #known = new Map<string, Proxy>();

  constructor(settings: () => ProxySettings, env: Environment) {
    this.#settings = settings;
    this.#env = env;
  }

  /** True if a proxy is set. */
  get isSet(): boolean {
    const { proxy } = this.#settings();
    return proxy !== NO_PROXY && (proxy !== AUTO_PROXY || firstOf(this.#env, PROXY_VARIABLES).name !== '');
  }

  /** True if only a proxy for http:// is set, which svcd does not use. */
  get isPlainOnly(): boolean {
    const isAuto = this.#settings().proxy === AUTO_PROXY;
    return isAuto && !this.isSet && firstOf(this.#env, PLAIN_VARIABLES).name !== '';
  }

  /**
   * The proxy that leads to a host; null for a direct connection.
   * @throws HelperFailure `proxy_invalid`
   */
  for(target: Address): Proxy | null {
    const { proxy, proxy_command: command, tls_ca: ca } = this.#settings();
    if (proxy === NO_PROXY) return null;
    const isAuto = proxy === AUTO_PROXY;
    const { name: setBy, value: text } = isAuto
      ? firstOf(this.#env, PROXY_VARIABLES)
      : { name: PROXY_KEY, value: proxy };
    if (text === '' || (isAuto && isExcepted(target, firstOf(this.#env, EXCEPTION_VARIABLES).value))) return null;
    const key = JSON.stringify([setBy, text, command, ca, isAuto]);
    const known = this.#known.get(key) ?? new Proxy(parseProxy(text, setBy), { command, ca, isOfEnvironment: isAuto });
    // Earlier settings are not needed again.
    if (!this.#known.has(key)) this.#known.clear();
    this.#known.set(key, known);
    return known;
  }
}

/** The answer of a proxy to CONNECT. */
interface Answer {
  readonly status: number;
  /** Value of `Proxy-Authenticate`. */
  readonly wants: string;
  /** Value of `Content-Type`. */
  readonly type: string;
  readonly socket: Duplex;
}

interface ProxyOptions extends Pick<Proxy, 'isOfEnvironment'> {
  readonly command: string;
  /** Path of more certificates that may sign its own; empty for none. */
  readonly ca: string;
}

export class Proxy {
  /** `host:port`, for messages. */
  readonly name: string;
  /** True if the environment names it. It may then belong to another network than the current one. */
  readonly isOfEnvironment: boolean;
  readonly #place: ProxyPlace;
  readonly #command: string;
  readonly #ca: string;
  /** `user:password` of the last output of the command. */
  #printed: string | null = null;

  constructor(place: ProxyPlace, { command, ca, isOfEnvironment }: ProxyOptions) {
    this.#place = place;
    this.#command = command;
    this.#ca = ca;
    this.isOfEnvironment = isOfEnvironment;
    this.name = formatAddress(place);
  }

  /** True if the connection to the proxy itself is TLS, so that `tls_ca` is for its certificate. */
  get isSecure(): boolean {
    return this.#place.isSecure;
  }

  /** Values in the texts of failures. */
  get facts(): { readonly proxy: string; readonly setBy: string } {
    return { proxy: this.name, setBy: this.#place.setBy };
  }

  /**
   * A TCP connection to a host through the proxy. The proxy resolves names.
   * @param onReached called when the proxy has accepted the connection
   * @throws HelperFailure, or the signal's reason
   */
  async connect(target: Address, signal: AbortSignal, onReached: () => void = () => {}): Promise<Duplex> {
    const isFirst = this.#command !== '' && this.#printed === null;
    if (isFirst) this.#printed = await this.#runCommand(signal);
    const answer = await this.#ask(target, this.#printed ?? this.#place.credentials, signal, onReached);
    if (answer.status !== 407 || this.#command === '' || isFirst) return this.#accept(target, answer);
    // The password has changed.
    answer.socket.destroy();
    this.#printed = await this.#runCommand(signal);
    return this.#accept(target, await this.#ask(target, this.#printed, signal, onReached));
  }

  #accept(target: Address, { status, wants, type, socket }: Answer): Duplex {
    // A tunnel has no type. A page answers for a login.
    const isPage = /^(text\/html|application\/xhtml)/i.test(type);
    if (status >= 200 && status < 300 && !isPage) return socket;
    socket.destroy();
    const facts = { ...this.facts, to: formatAddress(target), status };
    if (status < 400 || status === 511) throw tlsFailure('CONNECT gets a page or a redirect', facts);
    if (status === 407) {
      // Otherwise a new password would be used only after the next failure.
      this.#printed = null;
      throw this.#passwordFailure(wants);
    }
    throw tlsFailure(status >= 500 ? 'CONNECT 5xx' : 'CONNECT 4xx', facts);
  }

  #passwordFailure(wants: string): HelperFailure {
    const { facts } = this;
    const scheme = /^[a-z]+/i.exec(wants)?.[0] ?? 'Basic';
    const hasBasic = wants === '' || /(^|,\s*)basic\b/i.test(wants);
    if (!hasBasic) return tlsFailure('CONNECT 407 without Basic', { ...facts, scheme });
    if (this.#command !== '') return tlsFailure('CONNECT 407 to proxy_command', facts);
    return tlsFailure(this.#place.credentials === null ? 'CONNECT 407' : 'CONNECT 407 to a password', facts);
  }

  async #ask(target: Address, credentials: string | null, signal: AbortSignal, onReached: () => void): Promise<Answer> {
    const tcp = await this.#open(signal);
    onReached();
    const to = formatAddress(target);
    const headers: Record<string, string> = { Host: to };
    if (credentials !== null) headers['Proxy-Authorization'] = `Basic ${Buffer.from(credentials).toString('base64')}`;
    const asking = request({ method: 'CONNECT', path: to, headers, createConnection: () => tcp, signal });
    return await new Promise((resolve, reject) => {
      asking.on('connect', ({ statusCode = 0, headers }, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        const { 'proxy-authenticate': wants = [], 'content-type': type = '' } = headers;
        resolve({ status: statusCode, wants: wants.toString(), type, socket });
      });
      asking.on('error', (cause) => {
        tcp.destroy();
        reject(signal.aborted ? cause : tlsFailure('the proxy closes', this.facts, cause));
      });
      asking.end();
    });
  }

  /** Credentials may follow, so the certificate of an https:// proxy must be valid. */
  async #open(signal: AbortSignal): Promise<Socket> {
    const { host, port, isSecure } = this.#place;
    const ca = [...getCACertificates(), ...(isSecure && this.#ca !== '' ? [readTlsCa(this.#ca)] : [])];
    const servername = isIP(host) === 0 ? host : '';
    const socket = isSecure ? connectTls({ ...OUTER_TLS, host, port, servername, ca }) : connectTcp({ host, port });
    guard(socket);
    socket.setNoDelay(true);
    socket.setTimeout(PROXY_TCP_MS, () => socket.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })));
    try {
      await once(socket, isSecure ? 'secureConnect' : 'connect', { signal });
      socket.setTimeout(0);
      return socket;
    } catch (cause) {
      socket.destroy();
      if (signal.aborted) throw cause;
      throw tlsFailure('TCP to the proxy fails', { ...this.facts, code: codeOf(cause) }, cause);
    }
  }

  /** Errors contain neither the output nor the command, which may contain a password. */
  async #runCommand(signal: AbortSignal): Promise<string> {
    const { file, args, ...how } = shellCommand(this.#command, process.env);
    const options = {
      ...how,
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: MAX_CREDENTIALS_BYTES,
      windowsHide: true,
      signal,
    };
    const output = await new Promise<string>((resolve, reject) => {
      execFile(file, args, options, (error, stdout) => {
        if (error === null) resolve(stdout.trim());
        else
          reject(
            new HelperFailure('proxy_command_failed', `proxy_command failed (${codeOf(error)}). Run it in a shell.`),
          );
      });
    });
    if (/^\P{Cc}*:\P{Cc}*$/u.test(output)) return output;
    throw new HelperFailure('proxy_command_failed', 'proxy_command does not print user:password. Run it in a shell.');
  }
}
