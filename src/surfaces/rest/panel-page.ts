/** `GET /` and `GET /panel/{file}`: the web panel. Page and files hold no data, so they take no token. */
import type { ServerResponse } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import type { StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { panelStreams } from '../../operations/panel.ts';
import { PANEL_PAGE, type PanelFile, type PanelFiles } from './panel-files.ts';

/** Names carry a hash of the content. */
const FILE_CACHE = 'private, max-age=31536000, immutable';

/** What a panel never needs, so that nothing that got into it has it either. */
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
 * Where scripts and styles may come from: not all of this origin, on which remote agents answer as well (`/aid/`).
 * A policy cannot name the folder of an IPv6 address; the gateway refuses to give scripts by itself.
 */
function sourceOf(host: string | undefined): string {
  if (host === undefined) return "'none'";
  if (host.startsWith('[')) return "'self'";
  // The gate has checked whom it names; this is about what could end the directive.
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
<h1>svcd runs</h1>
<p>The web panel is not built in this checkout: run <code>npm run build</code> there, then load this page again.</p>
<p>This address is that of the API. What it offers is at <a href="/docs">/docs</a>; <code>svc status</code> says how this node is.</p>
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
