/**
 * Serves `GET /openapi.json`, and `GET /docs`, which shows the same document in a browser. It uses the files of Swagger
 * UI directly. The Fastify plugin would add 120 ms to every start and 13 MB of memory.
 */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { readPackageFile } from '../../foundation/package-file.ts';
import type { HttpStreamHandler, StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { pageStreams } from '../../operations/pages.ts';
import { JSON_TYPE } from './response.ts';

/** Swagger UI sets styles from its script and shows small images from `data:` URLs. It needs nothing else. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svcd API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="data:,">
</head>
<body>
<div id="docs"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: -1,
});
`;

/** Reads a file of Swagger UI from the build, or from its package if there is no build. */
function staticFile(name: string): Buffer {
  try {
    return readPackageFile(`dist/swagger/${name}`);
  } catch {
    return readFileSync(new URL(`static/${name}`, import.meta.resolve('@fastify/swagger-ui')));
  }
}

const FILES: Readonly<Record<string, string>> = {
  'swagger-ui-bundle.js': 'text/javascript',
  'swagger-ui.css': 'text/css',
};
/** The files change only with an update of the daemon, so browsers may cache them. */
const FILE_CACHE = 'private, max-age=3600';

function sendText(response: ServerResponse, type: string, content: string): void {
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY });
  response.end(content);
}

/** Serves a document that is created on the first request. */
export function openApiHandler(make: () => object): HttpStreamHandler {
  let text: string | undefined;
  return ({ response }) => {
    text ??= JSON.stringify(make());
    response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(text) }).end(text);
  };
}

/** Serves the page and its files from this daemon only. */
export const docsHandlers: Pick<StreamHandlers<typeof pageStreams>, 'docs' | 'docsFile'> = {
  docs: ({ response }) => sendText(response, 'text/html', PAGE),
  docsFile: ({ input, response }) => {
    const name = String(input['file']);
    if (name === 'start.js') return sendText(response, 'text/javascript', START);
    const type = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (type === undefined) throw new SvcError('not_found');
    response.setHeader('content-type', `${type}; charset=utf-8`);
    response.setHeader('cache-control', FILE_CACHE);
    response.end(staticFile(name));
  },
};
