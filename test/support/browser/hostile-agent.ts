/** The service of an agent that attacks every browser that opens it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostileHeaders } from '../hostile-headers.ts';

/** The effect of a script that runs. */
const RUN = "document.title='ran'";

/** Documents of every type in which a browser would run a script. */
export const SCRIPTED: Readonly<Record<string, { readonly type: string | undefined; readonly text: string }>> = {
  '/page.html': { type: 'text/html', text: `<!doctype html><title>agent</title><script>${RUN}</script>` },
  '/typeless': { type: undefined, text: `<!doctype html><title>agent</title><script>${RUN}</script>` },
  '/odd': { type: 'x/y, text/html', text: `<!doctype html><title>agent</title><script>${RUN}</script>` },
  '/utf-7': { type: 'text/html; charset=utf-7', text: `+ADw-script+AD4-${RUN}+ADw-/script+AD4-` },
  '/page.xhtml': {
    type: 'application/xhtml+xml',
    text: `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>agent</title></head><body><script>${RUN}</script></body></html>`,
  },
  '/image.svg': {
    type: 'image/svg+xml',
    text: `<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"><title>agent</title><script>${RUN}</script></svg>`,
  },
  '/styled.xml': {
    type: 'text/xml',
    text: `<?xml-stylesheet type="text/xsl" href="#style"?><x><xsl:stylesheet id="style" version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><html><script>${RUN}</script></html></xsl:template></xsl:stylesheet></x>`,
  },
  '/parts': {
    type: 'multipart/x-mixed-replace; boundary=b',
    text: `--b\r\nContent-Type: text/html\r\nSet-Cookie: part=1; Path=/\r\n\r\n<script>${RUN}</script>\r\n--b--\r\n`,
  },
};

/** A page with everything in its markup that runs, loads, sends or leads elsewhere. */
function page(evil: string, prefix: string): string {
  const rels = [
    'preload',
    'prefetch',
    'modulepreload',
    'stylesheet',
    'icon',
    'manifest',
    'dns-prefetch',
    'preconnect',
    'prerender',
  ];
  const rules = { prefetch: [{ urls: [`${evil}/rules-prefetch`], eagerness: 'immediate' }] };
  return `<!doctype html><html><head><title>agent</title>
<base href="/">
<meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline'">
<meta http-equiv="refresh" content="0;url=${evil}/meta-refresh">
<meta http-equiv="set-cookie" content="agent=1">
<meta name="referrer" content="unsafe-url">
${rels.map((rel) => `<link rel="${rel}" as="script" href="${evil}/${rel}"><link rel="${rel}" as="script" href="/agents">`).join('\n')}
<style>@import "${evil}/import"; body { background: url(${evil}/background) } @font-face { font-family: f; src: url(${evil}/font) } p { font-family: f }</style>
<script>${RUN}</script>
<script type="module">${RUN}</script>
<script src="${prefix}/script.js"></script>
<script type="speculationrules">${JSON.stringify(rules)}</script>
</head><body onload="${RUN}"><p>text</p>
<img src="${evil}/image"><img src="/agents"><img src="nowhere" onerror="${RUN}">
<svg onload="${RUN}"><script>${RUN}</script><image href="${evil}/svg-image"/><use href="${evil}/use#x"/></svg>
<iframe src="/docs"></iframe><iframe src="${evil}/frame"></iframe><iframe srcdoc="<script>parent.${RUN}</script>"></iframe>
<iframe src="javascript:parent.${RUN}"></iframe><object data="/docs"></object><object data="${evil}/object"></object>
<embed src="${evil}/embed"><video src="${evil}/video" autoplay></video><audio src="${evil}/audio" autoplay></audio>
<details open ontoggle="${RUN}"></details><input autofocus onfocus="${RUN}">
<form action="/identity/generate" method="post" enctype="text/plain"><button id="api-form">send</button></form>
<form action="${evil}/form" method="get"><button id="form">send</button></form>
<a id="script" href="javascript:${RUN}">run</a><a id="ping" href="#here" ping="${evil}/ping">ping</a>
<a id="download" href="/agents" download="agents.exe">save</a><a id="api" href="/agents" target="_self">go</a>
</body></html>`;
}

export interface HostileAgent {
  /** URL of a site of the attacker. */
  readonly evil: string;
  /** Base path of the agent. */
  readonly prefix: string;
}

/** Answers every request with hostile headers; the content type depends on the path. */
export function answerHostile(
  { evil, prefix }: HostileAgent,
  { url = '' }: IncomingMessage,
  response: ServerResponse,
): void {
  for (const [name, value] of Object.entries(hostileHeaders(evil))) response.setHeader(name, value);
  if (url === '/early') {
    // It would take the cookies away again.
    response.removeHeader('clear-site-data');
    response.writeEarlyHints({ link: `<${evil}/early>; rel=preload; as=script`, 'set-cookie': 'early=1' });
  }
  const document = SCRIPTED[url];
  const type = document === undefined ? (url.endsWith('.js') ? 'text/javascript' : 'text/html') : document.type;
  if (type !== undefined) response.setHeader('content-type', type);
  if (url.startsWith('/save')) response.setHeader('content-disposition', decodeURIComponent(url.split('?')[1] ?? ''));
  response.end(document?.text ?? (type === 'text/javascript' ? RUN : page(evil, prefix)));
}
