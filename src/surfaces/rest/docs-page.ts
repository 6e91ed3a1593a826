/**
 * `GET /openapi.json`, and `GET /docs`: the same document in a browser. Only the files of Swagger UI are taken from its
 * package; its Fastify plugin would cost 120 ms at every start and 13 MB.
 */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { readPackageFile } from '../../foundation/package-file.ts';
import type { HttpStreamHandler, StreamHandlers } from '../../operations/handlers/exchange.ts';
import type { pageStreams } from '../../operations/pages.ts';
import { JSON_TYPE } from './answer.ts';

/** Swagger UI sets styles from its script and draws small pictures from `data:` URLs; it needs nothing else. */
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

/** A file of Swagger UI: from what is built, or where nothing is, from the package that it comes from. */
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
/** They stay the same until the daemon is updated, so a browser may keep them for a while. */
const FILE_CACHE = 'private, max-age=3600';

function sendText(response: ServerResponse, type: string, content: string): void {
  response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY });
  response.end(content);
}

/** Serves a document that is made at the first request for it. */
export function openApiHandler(make: () => object): HttpStreamHandler {
  let text: string | undefined;
  return ({ response }) => {
    text ??= JSON.stringify(make());
    response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(text) }).end(text);
  };
}

/** The page and what it loads: all from here, nothing from the network. */
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
