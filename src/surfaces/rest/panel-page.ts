/**
 * Serves the web panel at `GET /` and `GET /panel/{file}`. The page and its files contain no data, so they need no
 * token.
 */
import type { ServerResponse } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { memberOf, readJson } from '../../foundation/json.ts';
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { panelStreams } from '../../operations/panel.ts';

// The files of the built panel. They are small, so they are read once and cached. A build while the daemon runs has
// no effect.

/** The page that loads all other files. */
const PANEL_PAGE = 'index.html';
const MANIFEST = 'manifest.json';
/** Maximum number of panel files. */
const MAX_PANEL_FILES = 200;

interface PanelFile {
  readonly type: string;
  readonly content: Buffer;
}

/** Reads a file of the build by name. Throws if it does not exist. */
type ReadFile = (name: string) => Buffer;

type Files = ReadonlyMap<string, PanelFile>;

/** Names and media types from the build manifest; none if there is no build. */
function listed(read: ReadFile): readonly (readonly [string, string])[] {
  const manifest = readJson(read(MANIFEST).toString('utf8'));
  const files = memberOf(manifest, 'files');
  if (typeof files !== 'object' || files === null) return [];
  return Object.entries(files)
    .filter((pair): pair is [string, string] => typeof pair[1] === 'string' && /^\w[\w.-]*$/.test(pair[0]))
    .slice(0, MAX_PANEL_FILES);
}

function readAll(read: ReadFile): Files | null {
  try {
    const names = new Map([[PANEL_PAGE, 'text/html; charset=utf-8'], ...listed(read)]);
    return new Map([...names].map(([name, type]) => [name, { type, content: read(name) }]));
  } catch {
    // The build is missing or incomplete. Try again on the next request.
    return null;
  }
}

export class PanelFiles {
  readonly #read: ReadFile;
  #files: Files | null = null;

  /** @param read reads a file of the build, which may not exist yet */
  constructor(read: ReadFile) {
    this.#read = read;
  }

  /** A file of the panel; undefined for an unlisted name, or if there is no build. */
  get(name: string): PanelFile | undefined {
    this.#files ??= readAll(this.#read);
    return this.#files?.get(name);
  }
}

/** File names contain a hash of the content. */
const FILE_CACHE = 'private, max-age=31536000, immutable';

/** Browser features that the panel never needs. Injected code must not have them either. */
const FEATURES = [
  'accelerometer',
  'bluetooth',
  'camera',
  'display-capture',
  'geolocation',
  'gyroscope',
  'hid',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'serial',
  'usb',
  'xr-spatial-tracking',
];
const PERMISSIONS_POLICY = FEATURES.map((feature) => `${feature}=()`).join(', ');

/**
 * Allowed source of scripts and styles: only the panel's folder, because remote agents also respond in this origin
 * (`/aid/`). A policy cannot name a folder at an IPv6 address. The gateway itself also refuses to serve scripts.
 */
function sourceOf(host: string | undefined): string {
  if (host === undefined) return "'none'";
  if (host.startsWith('[')) return "'self'";
  // The gate has checked the host. This check prevents injection into the policy.
  if (!/^[\w.-]+(?::\d{1,5})?$/.test(host)) throw new SvcError('forbidden_host');
  return `http://${host}/panel/`;
}

function policyFor(host: string | undefined): string {
  const source = sourceOf(host);
  return [
    "default-src 'none'",
    `script-src ${source}`,
    `style-src ${source}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

const NOT_BUILT: PanelFile = {
  type: 'text/html; charset=utf-8',
  content: Buffer.from(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svcd</title>
<link rel="icon" href="data:,">
</head>
<body>
<h1>svcd is running</h1>
<p>The web panel is not built in this checkout. Run <code>npm run build</code> there, then reload this page.</p>
<p>The API uses the same address. Its documentation is at <a href="/docs">/docs</a>. <code>svc status</code> shows the state of this node.</p>
</body>
</html>
`),
};

function send(response: ServerResponse, { type, content }: PanelFile): void {
  const headers = { 'content-type': type, 'content-length': content.length };
  response.writeHead(200, headers).end(response.req.method === 'HEAD' ? undefined : content);
}

export function panelPageHandlers(files: PanelFiles): StreamHandlers<typeof panelStreams> {
  return {
    panel: ({ request, response }) => {
      response.setHeader('content-security-policy', policyFor(request.headers.host));
      response.setHeader('cross-origin-opener-policy', 'same-origin');
      response.setHeader('permissions-policy', PERMISSIONS_POLICY);
      send(response, files.get(PANEL_PAGE) ?? NOT_BUILT);
    },
    panelFile: ({ input, response }) => {
      const name = String(input['file']);
      const file = name === PANEL_PAGE ? undefined : files.get(name);
      if (file === undefined) throw new SvcError('not_found');
      response.setHeader('cache-control', FILE_CACHE);
      send(response, file);
    },
  };
}
