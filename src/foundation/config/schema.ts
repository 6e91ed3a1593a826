/** Every configuration key with type, default and meaning: the source of the JSON Schema and the reference page. */

import { type Static, Type } from 'typebox';
import { DEFAULT_API_ADDR, DEFAULT_DHT_PORT } from '../address.ts';
import { MAX_CALLED_CHARS } from '../called-name.ts';
import { MAX_PUBLIC_NAME_CHARS } from '../domain/public-names.ts';
import { LOG_FORMATS, LOG_LEVELS } from '../log.ts';
import { MAX_PERCENT } from '../traces/trace-context.ts';
import { AUTO_TLS_LISTEN } from './tls-listen.ts';

/** Longest text of a configuration value, characters. */
const MAX_TEXT_LENGTH = 1024;
/** Longest `api_token`, characters. */
const MAX_TOKEN_LENGTH = 256;
/** Maximum number of entries of `bootstrap`. */
const MAX_BOOTSTRAP_COUNT = 64;
/** Maximum number of entries of `turn_servers`. */
const MAX_TURN_SERVER_COUNT = 16;
/** Value of `proxy` that reads the environment. */
export const AUTO_PROXY = 'auto';
/** Value of `proxy` for direct connections. */
export const NO_PROXY = 'none';
/** Let's Encrypt. */
const DEFAULT_ACME_DIRECTORY = 'https://acme-v02.api.letsencrypt.org/directory';
/** Highest `min_observed_peers`. */
const MAX_OBSERVED_PEERS = 100;

/** Highest `relay_sessions`: each takes two ports. */
const MAX_RELAY_SESSIONS = 1024;
/** Highest `tls_sessions`. */
const MAX_TLS_SESSIONS = 4096;
/** Highest number of bytes that are relayed. */
const MAX_RELAY_BYTES: number = 1024 ** 5;

/** Highest number of entries of `public_names` and of `entry_proxies`. */
const MAX_PUBLIC_DOMAINS = 16;
const MAX_ENTRY_PROXIES = 64;
/** Highest `entry_connections`. */
const MAX_ENTRY_CONNECTIONS = 50_000;

function relayBytes(description: string, value: number) {
  return Type.Integer({ description, default: value, minimum: 0, maximum: MAX_RELAY_BYTES });
}

function text(description: string, value = '', maxLength = MAX_TEXT_LENGTH) {
  return Type.String({ description, default: value, maxLength });
}

function flag(description: string, value: boolean) {
  return Type.Boolean({ description, default: value });
}

const TurnServerSchema = Type.Object(
  {
    url: text('`turn:host:port` or `turns:host:port`, optionally with `?transport=udp` or `tcp`.'),
    username: text('User name, required with `static`.'),
    credential: text('Password (`static`) or shared secret (`hmac`).'),
    credential_type: Type.Enum(['static', 'hmac', 'rest_api'], {
      type: 'string',
      default: 'static',
      description:
        'Source of the password: `static` as given, `hmac` derived from a shared secret, `rest_api` fetched from a URL.',
    }),
    credential_url: text('URL for `rest_api`: https, or http on this machine.'),
  },
  { additionalProperties: false, required: ['url'] },
);

export const ConfigSchema = Type.Object(
  {
    name: text(
      'Name of this node, which invited and inviting nodes see. Empty: the name of the machine.',
      '',
      MAX_CALLED_CHARS,
    ),
    listen_addr: text('UDP address of the DHT, `host:port` or `:port`.', `:${DEFAULT_DHT_PORT}`),
    quic_listen_addr: text('UDP address of QUIC. Empty: the next port after `listen_addr`.'),
    bootstrap: Type.Array(Type.String({ maxLength: MAX_TEXT_LENGTH }), {
      description:
        'Nodes to join through: `host:port`, or `host` for port 4121. With `<node aid>@` in front, the node must prove that key.',
      default: [],
      maxItems: MAX_BOOTSTRAP_COUNT,
    }),
    network: text('Name of a private network. Nodes of other networks are ignored. Empty: the default network.'),
    mdns: flag('Find other nodes on this LAN by multicast DNS.', true),
    lan_tcp: flag('Also use TCP, which is faster, to nodes on this machine and in private networks.', true),
    disable_upnp: flag('Do not ask the router for a port mapping (UPnP, NAT-PMP, PCP).', false),
    fallback_host: text(
      'Public host name or IP address to publish until a node has reached this one at another address.',
    ),
    min_observed_peers: Type.Integer({
      description: 'Distinct peers that must report the same address of this node before it is used.',
      default: 3,
      minimum: 1,
      maximum: MAX_OBSERVED_PEERS,
    }),
    api_addr: text('TCP address of the API. An address that is not loopback needs an `api_token`.', DEFAULT_API_ADDR),
    api_token: text('API token, sent as `Authorization: Bearer`. Empty: none.', '', MAX_TOKEN_LENGTH),
    require_local_token: flag('Require the token from programs on this machine too.', false),
    key_dir: text('Absolute path of the key files. Empty: `keys` in the data directory.'),
    log_format: Type.Enum(LOG_FORMATS, {
      type: 'string',
      description: 'Format of the log on stderr.',
      default: 'text',
    }),
    log_level: Type.Enum(LOG_LEVELS, {
      type: 'string',
      description: 'Least important level to log.',
      default: 'info',
    }),
    auto_publish: flag('Publish agents after registration. Published records are always renewed.', true),
    turn_servers: Type.Array(TurnServerSchema, {
      description: 'TURN servers, used if no other path works.',
      default: [],
      maxItems: MAX_TURN_SERVER_COUNT,
    }),
    disable_relay: flag('Never use a relay or UDP over TLS. Connections that need one fail.', false),
    proxy: text(
      'HTTP proxy for UDP over TLS: a URL with `http://` or `https://`, `auto` to read `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, or `none`.',
      AUTO_PROXY,
    ),
    proxy_command: text(
      'Command that prints `user:password` for the proxy. It runs again when the proxy rejects the password.',
    ),
    tls_ca: text(
      'Absolute path of PEM certificates that must sign the certificates of helpers, for networks that inspect TLS. Empty: any certificate.',
    ),
    help_others: flag('If strangers can reach this node, help other nodes: introduce them and relay for them.', true),
    relay_sessions: Type.Integer({
      description: 'Pairs of other nodes to relay for at the same time. 0: none.',
      default: 64,
      minimum: 0,
      maximum: MAX_RELAY_SESSIONS,
    }),
    relay_bytes_per_second: relayBytes('Bytes per second to relay for others.', 16 * 1024 ** 2),
    relay_bytes_per_day: relayBytes('Bytes per day (UTC) to relay for others.', 64 * 1024 ** 3),
    tls_listen: text(
      'TCP addresses for UDP over TLS, separated by commas: `host:port`, or `http://127.0.0.1:port` behind a web server. `auto`: the port of `listen_addr`, and 443. `none`: no listener.',
      AUTO_TLS_LISTEN,
    ),
    tls_sessions: Type.Integer({
      description: 'Nodes that may use UDP ports of this one over TLS at the same time. 0: none.',
      default: 256,
      minimum: 0,
      maximum: MAX_TLS_SESSIONS,
    }),
    tls_cert: text('Absolute path of the PEM certificate for `tls_listen`. Empty: a new self-signed one.'),
    tls_key: text('Absolute path of its PEM key.'),
    public_cert: text(
      'Absolute path of a PEM certificate for public addresses. Empty: certificates from `acme_directory`.',
    ),
    public_key: text('Absolute path of its PEM key.'),
    acme_directory: text(
      'URL of the ACME server that signs certificates for public addresses.',
      DEFAULT_ACME_DIRECTORY,
    ),
    public_names: Type.Array(Type.String({ maxLength: MAX_PUBLIC_NAME_CHARS }), {
      description:
        'Domains of this entry: agents that `svc entry allow` permits hold names below them. Empty: no entry.',
      default: [],
      maxItems: MAX_PUBLIC_DOMAINS,
    }),
    entry_connections: Type.Integer({
      description: 'Public connections to pass on at the same time.',
      default: 10_000,
      minimum: 1,
      maximum: MAX_ENTRY_CONNECTIONS,
    }),
    entry_bytes_per_second: relayBytes('Bytes per second to pass on for public names.', 16 * 1024 ** 2),
    entry_bytes_per_day: relayBytes('Bytes per day (UTC) to pass on for public names.', 64 * 1024 ** 3),
    entry_proxies: Type.Array(Type.String({ maxLength: MAX_TEXT_LENGTH }), {
      description:
        'IP addresses and IPv4 networks of web servers in front of `tls_listen` that pass TLS on with a PROXY header.',
      default: [],
      maxItems: MAX_ENTRY_PROXIES,
    }),
    files_root: text(
      'Absolute path of the folder for objects. Empty: `files` in the data directory. `none`: objects are off.',
    ),
    traces: flag('Trace calls. `false`: `traceparent` passes unchanged, and none is added.', true),
    trace_percent: Type.Integer({
      description: 'Share of the calls to sample that carry no `traceparent`, percent. The others get none.',
      default: 1,
      minimum: 0,
      maximum: MAX_PERCENT,
    }),
    share_traces: flag('Callers may read the spans of their calls on this node.', true),
    otlp_endpoint: text(
      'Base URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`. Spans go to `/v1/traces` below it. Empty: no export.',
    ),
    otlp_headers_file: text(
      'Absolute path of a file with headers for the collector, one `Name: value` a line. Needs https, or a collector on this machine.',
    ),
    open_browser: flag('Open the panel in a browser when the daemon starts on a desktop.', true),
  },
  { additionalProperties: false },
);

type Deep<T> = T extends readonly (infer U)[] ? readonly Deep<U>[] : T extends object ? DeepObject<T> : T;
type DeepObject<T> = { readonly [K in keyof T]: Deep<T[K]> };

/** A complete configuration with defaults. */
export type Config = Deep<Static<typeof ConfigSchema>>;
export type ConfigKey = keyof Config;

/** An entry of `turn_servers` with defaults. */
export type TurnServer = Config['turn_servers'][number];

export const CONFIG_KEYS = Object.keys(ConfigSchema.properties) as readonly ConfigKey[];

/** Keys that apply without a restart. */
export const LIVE_KEYS: ReadonlySet<ConfigKey> = new Set<ConfigKey>([
  'name',
  'api_token',
  'log_level',
  'log_format',
  'auto_publish',
  'disable_relay',
  'files_root',
]);

/** Value of `files_root` that turns objects off. */
export const NO_FILES_ROOT = 'none';

/**
 * Keys that `PATCH /config` may change. All other keys would give a token holder more power; they are changed in the file,
 * or by a route for local programs.
 */
export const PATCHABLE_KEYS: ReadonlySet<ConfigKey> = new Set<ConfigKey>([
  'name',
  'listen_addr',
  'quic_listen_addr',
  'bootstrap',
  'disable_upnp',
  'fallback_host',
  'min_observed_peers',
  'api_addr',
  'api_token',
  'key_dir',
  'log_format',
  'log_level',
  'auto_publish',
  'turn_servers',
  'disable_relay',
]);

export function isConfigKey(name: string): name is ConfigKey {
  return Object.hasOwn(ConfigSchema.properties, name);
}

/** Keys that contain secrets. */
export const SECRET_KEYS: ReadonlySet<ConfigKey> = new Set(['api_token', 'turn_servers', 'proxy', 'proxy_command']);

/** The environment variable that sets a key. */
export function environmentName(key: ConfigKey): string {
  return `SVCD_${key.toUpperCase()}`;
}

/** The JSON Schema of a key, with more information for configuration editors. */
type KeySchema = {
  readonly description: string;
  readonly default: unknown;
  /** The API cannot change it. */
  readonly readOnly: boolean;
  /** A change needs a restart. */
  readonly 'x-restart': boolean;
  /** The environment variable for it. */
  readonly 'x-environment': string;
};

type ConfigJsonSchema = {
  readonly $schema: string;
  readonly title: string;
  readonly type: 'object';
  readonly properties: Readonly<Record<ConfigKey, KeySchema>>;
  readonly additionalProperties: false;
};

/** The JSON Schema (2020-12) of the configuration file. */
export function configSchema(): ConfigJsonSchema {
  const properties = CONFIG_KEYS.map((key) => [
    key,
    {
      ...ConfigSchema.properties[key],
      readOnly: !PATCHABLE_KEYS.has(key),
      'x-restart': !LIVE_KEYS.has(key),
      'x-environment': environmentName(key),
    },
  ]);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Configuration of svcd',
    type: 'object',
    properties: Object.fromEntries(properties) as Record<ConfigKey, KeySchema>,
    additionalProperties: false,
  };
}
