/** Validates values one key at a time. Errors do not contain the value, which may be a secret. */
import { isAbsolute } from 'node:path';
import { Default, Errors } from 'typebox/value';
import { hostOfUrl, isEveryInterface, isHost, isLoopbackHost, parseAddress, parseContact } from '../address.ts';
import { calledName } from '../called-name.ts';
import { NETWORK_NAME } from '../domain/directory.ts';
import { isDomain } from '../domain/public-names.ts';
import { canonicalIp, isIpv4Network } from '../ip.ts';
import {
  AUTO_PROXY,
  type Config,
  type ConfigKey,
  ConfigSchema,
  NO_FILES_ROOT,
  NO_PROXY,
  type TurnServer,
} from './schema.ts';
import { parseTlsListen } from './tls-listen.ts';

/** A valid value, or its problem: a phrase that follows the key's name. */
export type ValueCheck = { readonly value: Config[ConfigKey] } | { readonly problem: string };

/** Characters of a bearer token (RFC 6750). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
/** Minimum length of an `api_token`, in characters. A shorter one can be guessed over a network. */
const MIN_TOKEN_LENGTH = 8;
const TURN_URL = /^turns?:(\[[^\]]+\]|[^:?[\]]+)(?::(\d{1,5}))?(?:\?transport=(?:udp|tcp))?$/;
/** Control characters, line and paragraph separators, which no value needs. */
const CONTROL = /[\p{Cc}\u2028\u2029\p{Cs}]/u;

const ADDRESS_PROBLEM = 'must be host:port, [ipv6]:port or :port';

/** The final value, frozen and with defaults of nested members, or the problem. */
export function checkValue(key: ConfigKey, raw: unknown): ValueCheck {
  const schema = ConfigSchema.properties[key];
  const error = Errors(schema, raw).find(({ keyword }) => keyword !== 'boolean');
  if (error !== undefined) {
    const where = error.instancePath === '' ? '' : `at ${error.instancePath.slice(1).replaceAll('/', '.')} `;
    if (error.keyword === 'enum')
      return { problem: `${where}must be one of: ${error.params.allowedValues.join(', ')}` };
    if (error.keyword === 'additionalProperties') {
      return { problem: `${where}has the unknown member ${JSON.stringify(error.params.additionalProperties[0])}` };
    }
    return { problem: `${where}${error.message}` };
  }
  const value = Default(schema, structuredClone(raw)) as Config[ConfigKey];
  const problem = hasControl(value) ? 'must not contain control characters' : (CHECKS[key]?.(value as never) ?? null);
  return problem === null ? { value: freeze(value) } : { problem };
}

function hasControl(value: unknown): boolean {
  if (typeof value === 'string') return CONTROL.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasControl);
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(freeze);
  return Object.freeze(value);
}

/** Rules that the schema of a key does not contain. */
type Checks = { readonly [K in ConfigKey]?: (value: Config[K]) => string | null };

const optional = (check: (text: string) => string | null) => (text: string) => (text === '' ? null : check(text));

const address = (text: string) => (parseAddress(text) === null ? ADDRESS_PROBLEM : null);
const host = (text: string) => (isHost(text) ? null : 'must be a host name or an IP address, without a port');
const path = (text: string) => (isAbsolute(text) ? null : 'must be an absolute path');

const CHECKS: Checks = {
  // Otherwise the name of the machine would be sent in its place.
  name: optional((text) =>
    calledName(text) === undefined ? 'must not look like an address, nor mix letters that look alike' : null,
  ),
  listen_addr: address,
  quic_listen_addr: optional(address),
  bootstrap: (list) => {
    const wrong = list.findIndex((entry) => parseContact(entry) === null);
    return wrong < 0
      ? null
      : `at ${wrong} must be a host or host:port with a port of 1 to 65535; "<node aid>@" may precede it`;
  },
  network: optional((name) =>
    NETWORK_NAME.test(name) ? null : 'must be 1 to 63 of a-z, 0-9, ".", "-" and "_", and start with a letter or digit',
  ),
  fallback_host: optional(host),
  api_addr: address,
  api_token: optional((token) =>
    token.length >= MIN_TOKEN_LENGTH && TOKEN.test(token)
      ? null
      : `must be ${MIN_TOKEN_LENGTH} or more letters, digits and "-._~+/", with "=" only at the end`,
  ),
  key_dir: optional(path),
  proxy: (text) =>
    text === AUTO_PROXY || text === NO_PROXY || isProxyUrl(text)
      ? null
      : 'must be "auto", "none", or a URL that starts with http:// or https://',
  tls_ca: optional(path),
  public_names: (domains) => {
    const wrong = domains.findIndex((domain) => !isDomain(domain));
    return wrong < 0 ? null : `at ${wrong} must be a domain in lower case, such as "vps.example.org"`;
  },
  entry_proxies: (proxies) => {
    const wrong = proxies.findIndex((proxy) => canonicalIp(proxy) !== proxy && !isIpv4Network(proxy));
    return wrong < 0 ? null : `at ${wrong} must be an IP address, or an IPv4 network such as "10.0.0.0/8"`;
  },
  tls_listen: (text) =>
    parseTlsListen(text) === null
      ? 'must be "auto", "none", or up to 8 of host:port and http://127.0.0.1:port, separated by commas'
      : null,
  tls_cert: optional(path),
  tls_key: optional(path),
  public_cert: optional(path),
  public_key: optional(path),
  acme_directory: (text) => (isCredentialUrl(text) ? null : 'must be an https URL, or http on this machine'),
  turn_servers: (servers) => {
    const problems = servers.map(checkTurnServer);
    const wrong = problems.findIndex((problem) => problem !== null);
    return wrong < 0 ? null : `at ${wrong}${problems[wrong]}`;
  },
  otlp_endpoint: optional((text) =>
    isCollectorUrl(text) ? null : 'must be an http or https URL without user, query and fragment',
  ),
  otlp_headers_file: optional(path),
  files_root: optional((text) =>
    text === NO_FILES_ROOT || isAbsolute(text) ? null : 'must be an absolute path, or "none"',
  ),
};

function isProxyUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.hostname !== '' && (url.protocol === 'http:' || url.protocol === 'https:');
}

/** Credentials belong into `otlp_headers_file`. */
function isCollectorUrl(text: string): boolean {
  return isProxyUrl(text) && !/[?#@]/.test(text);
}

function isRemoteAddress(text: string): boolean {
  const parsed = parseAddress(text);
  return parsed !== null && parsed.host !== '' && parsed.port !== 0;
}

function checkTurnServer(server: TurnServer): string | null {
  const [, name = '', port = '3478'] = TURN_URL.exec(server.url) ?? [];
  if (!isRemoteAddress(`${name}:${port}`)) return '.url must be turn:host:port or turns:host:port';
  const { credential_type: type } = server;
  if (type === 'static' && server.username === '') return '.username is required with credential_type static';
  if (type !== 'rest_api' && server.credential === '') return `.credential is required with credential_type ${type}`;
  if (type === 'rest_api' && !isCredentialUrl(server.credential_url)) {
    return '.credential_url must be an https address, or http on this machine, with credential_type rest_api';
  }
  return type !== 'rest_api' && server.credential_url !== ''
    ? '.credential_url is only for credential_type rest_api'
    : null;
}

/** A clear-text password must not cross a network. */
function isCredentialUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(hostOfUrl(url)));
}

/**
 * A problem between several keys: the key to change and a sentence, or null. An open API on a network would give every
 * agent of this node to others.
 */
export function checkCombination(config: Config): { readonly key: ConfigKey; readonly problem: string } | null {
  const api = parseAddress(config.api_addr);
  if (config.api_token === '' && (api === null || !isLoopbackHost(api.host))) {
    return {
      key: 'api_token',
      problem: 'is required if api_addr is not a loopback address: set a token, or use 127.0.0.1',
    };
  }
  if (config.api_token === '' && config.require_local_token) {
    return { key: 'api_token', problem: 'is required with require_local_token' };
  }
  for (const use of ['tls', 'public'] as const) {
    const [cert, key] = [`${use}_cert`, `${use}_key`] as const;
    if ((config[cert] === '') === (config[key] === '')) continue;
    return config[cert] === ''
      ? { key: cert, problem: `is required with ${key}` }
      : { key, problem: `is required with ${cert}` };
  }
  if (config.otlp_headers_file !== '' && !isCredentialUrl(config.otlp_endpoint)) {
    return { key: 'otlp_endpoint', problem: 'must be https, or http on this machine, with otlp_headers_file' };
  }
  const dht = parseAddress(config.listen_addr);
  const quic = parseAddress(config.quic_listen_addr);
  if (dht?.port === 65_535 && quic === null) {
    return {
      key: 'quic_listen_addr',
      problem: 'is required if listen_addr has port 65535, because there is no next port',
    };
  }
  if (dht !== null && quic !== null && dht.port !== 0 && dht.port === quic.port && overlap(dht.host, quic.host)) {
    return { key: 'quic_listen_addr', problem: 'must not be the UDP port of listen_addr' };
  }
  return null;
}

function overlap(a: string, b: string): boolean {
  return a === b || isEveryInterface(a) || isEveryInterface(b);
}
