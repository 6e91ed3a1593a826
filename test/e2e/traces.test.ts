/** One trace over three daemons: A calls the service of B, which calls services of C through the daemon of B. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { detach } from '../../src/foundation/detached.ts';
import { isObject } from '../../src/foundation/json.ts';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';

/** Appears in the body, the path, the query, a header and a token of the calls. */
const CANARY = 'canary7f31';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PROGRAM_SPAN = '00f067aa0ba902b7';
const STATE = 'vendor=opaque,other@one=1';
/** The clocks of processes differ by less than this, milliseconds. */
const CLOCK_MS = 1;

interface Span {
  readonly node: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: string } }[];
}

type Listener = (...exchange: Parameters<RequestListener>) => void | Promise<void>;

async function serve(t: TestContext, listener: Listener): Promise<number> {
  const server = createServer((request, response) => detach(Promise.resolve(listener(request, response))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A collector that writes each span as a line of a file. */
async function collector(t: TestContext, file: string) {
  const headers: IncomingHttpHeaders[] = [];
  const port = await serve(t, async (request, response) => {
    headers.push(request.headers);
    const { resourceSpans } = JSON.parse((await buffer(request)).toString()) as {
      resourceSpans: {
        resource: { attributes: Span['attributes'] };
        scopeSpans: { spans: Omit<Span, 'node'>[] }[];
      }[];
    };
    const lines = resourceSpans.flatMap(({ resource, scopeSpans }) => {
      const node = resource.attributes.find(({ key }) => key === 'service.instance.id')?.value.stringValue;
      return scopeSpans.flatMap(({ spans }) => spans.map((span) => `${JSON.stringify({ node, ...span })}\n`));
    });
    writeFileSync(file, lines.join(''), { flag: 'a' });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  return { url: `http://127.0.0.1:${port}`, headers };
}

function spansIn(file: string): Span[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Span);
}

function attributeOf(span: Span | undefined, wanted: string): string | undefined {
  const value = span?.attributes.find(({ key }) => key === wanted)?.value;
  return value?.stringValue ?? value?.intValue;
}

test('a call over three daemons is one trace: spans nest, a refused hop shows its code, and no content is in it', async (t) => {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'svcd-traces-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'spans.jsonl');
  writeFileSync(file, '');
  const secrets = join(folder, 'headers');
  writeFileSync(secrets, `# for the collector\nauthorization: Bearer ${CANARY}\n`, { mode: 0o600 });
  const { url, headers } = await collector(t, file);
  const env = { SVCD_OTLP_ENDPOINT: url, SVCD_OTLP_HEADERS_FILE: secrets };
  const a = await TestDaemon.start({ env });
  t.after(() => a.stop());
  const b = await TestDaemon.start({ env, bootstrap: [a.dhtAddress] });
  t.after(() => b.stop());
  const c = await TestDaemon.start({ env, bootstrap: [a.dhtAddress] });
  t.after(() => c.stop());
  await Promise.all([a, b, c].map((daemon) => ready(daemon)));

  const received: IncomingHttpHeaders[] = [];
  const portC = await serve(t, (request, response) => {
    received.push(request.headers);
    response.end('done');
  });
  const open = await c.newAgent(`127.0.0.1:${portC}`);
  const closed = await c.newAgent(`127.0.0.1:${portC}`);
  await c.call('PATCH', `/agents/${closed}/acl`, { default: 'deny' });
  const middle = await b.newAgent();
  const portB = await serve(t, async (request, response) => {
    received.push(request.headers);
    const { traceparent = '', tracestate = '' } = request.headers;
    const passed = { traceparent: String(traceparent), tracestate: String(tracestate) };
    // Once through the gateway, and once through the API for calls.
    const good = await fetch(`${b.api}/aid/${open}/${CANARY}?q=${CANARY}`, {
      headers: { ...passed, 'svc-local-aid': middle },
    });
    const bad = await b.request('POST', `/fetch/${closed}`, { path: `/${CANARY}`, local_aid: middle }, passed);
    response.end(`${good.status} ${await good.text()} ${bad.status}`);
  });
  await b.call('PATCH', `/agents/${middle}`, { service_tcp: `127.0.0.1:${portB}` });
  const caller = await a.newAgent();
  for (const [daemon, aid] of [
    [b, middle],
    [c, open],
    [c, closed],
  ] as const)
    await daemon.call('POST', `/agents/${aid}/publish`);

  const answer = await a.request('POST', `/fetch/${middle}`, {
    path: `/${CANARY}?q=${CANARY}`,
    method: 'POST',
    local_aid: caller,
    body_base64: Buffer.from(CANARY).toString('base64'),
    access_token: CANARY,
    headers: {
      'x-secret': CANARY,
      traceparent: `00-${TRACE_ID}-${PROGRAM_SPAN}-01`,
      tracestate: STATE,
    },
  });
  assert.equal(answer.status, 200);
  const text = isObject(answer.body) ? Buffer.from(String(answer.body['body']), 'base64').toString() : '';
  assert.equal(text, '200 done 403');
  assert.deepEqual(
    received.map(({ traceparent, tracestate }) => [String(traceparent).slice(0, 36), tracestate]),
    received.map(() => [`00-${TRACE_ID}-`, STATE]),
  );
  assert.equal(received.length, 2);

  // A sees its call and the request at B, but not the calls of B.
  const seen = await a.call<{ spans: Record<string, unknown>[]; missing: unknown[] }>('GET', `/traces/${TRACE_ID}`);
  assert.deepEqual(seen.missing, []);
  assert.deepEqual(
    seen.spans.filter(({ reported_by: by }) => by !== null).map(({ name, reported_by: by }) => [name, by]),
    ['POST', 'access', 'service'].map((name) => [name, middle]),
  );
  assert.ok(seen.spans.some(({ name, reported_by: by }) => name === 'link' && by === null));
  const shown = await runSvc(['trace', TRACE_ID], { dataDir: a.dataDir });
  assert.match(shown.stdout, /POST [\s\S]*link [\s\S]*served POST[\s\S]*access [\s\S]*service /);
  assert.match((await runSvc(['trace'], { dataDir: a.dataDir })).stdout, new RegExp(TRACE_ID.slice(0, 8)));
  const refused = await b.call<{ spans: { attributes: Record<string, unknown> }[]; missing: unknown[] }>(
    'GET',
    `/traces/${TRACE_ID}`,
  );
  assert.deepEqual(refused.missing, [{ aid: closed, error: 'access_denied' }]);

  // All three export to one file.
  const spans = await eventually('all spans are exported', async () => {
    const all = spansIn(file).filter(({ traceId }) => traceId === TRACE_ID);
    return new Set(all.map(({ node }) => node)).size === 3 && all.some(({ name }) => name === 'body') && all;
  });
  assert.ok(headers.every(({ authorization }) => authorization === `Bearer ${CANARY}`));
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  assert.equal(byId.size, spans.length);
  const roots = spans.filter(({ parentSpanId = '' }) => !byId.has(parentSpanId));
  assert.deepEqual(
    roots.map(({ name, parentSpanId }) => [name, parentSpanId]),
    [['POST', PROGRAM_SPAN]],
  );
  for (const span of spans) {
    const parent = byId.get(span.parentSpanId ?? '');
    if (parent === undefined) continue;
    const early = Number(BigInt(parent.startTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6;
    const late = Number(BigInt(span.endTimeUnixNano) - BigInt(parent.endTimeUnixNano)) / 1e6;
    assert.ok(early <= CLOCK_MS && late <= CLOCK_MS, `${span.name} in ${parent.name}: ${early} ms, ${late} ms`);
  }
  const hops = spans.filter(({ kind, name }) => kind !== 1 && name !== 'service');
  const hopOf = (kind: number, called: string) =>
    hops.find((span) => span.kind === kind && attributeOf(span, 'server.address') === called);
  const depth = (span: Span | undefined): number =>
    span === undefined ? 0 : 1 + depth(byId.get(span.parentSpanId ?? ''));
  // The call, its service at B, the call of B, its request at C.
  assert.deepEqual(
    [hopOf(3, middle), hopOf(2, middle), hopOf(3, open), hopOf(2, open), hopOf(3, closed)].map(depth),
    [1, 2, 4, 5, 4],
  );
  assert.equal(attributeOf(hopOf(3, closed), 'error.type'), 'access_denied');
  assert.equal(hopOf(2, closed), undefined);
  assert.equal(attributeOf(hopOf(3, middle), 'http.response.status_code'), '200');

  for (const place of [readFileSync(file, 'utf8'), JSON.stringify(seen), a.output, b.output, c.output])
    assert.ok(!place.includes(CANARY), place);
});
