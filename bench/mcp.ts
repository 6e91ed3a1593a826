/**
 * Tool calls at the rate of several busy assistants, over HTTP and over stdio. Yardsticks in the same
 * run: a plain Node server that answers as many bytes, and the same operation over REST.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { TestDaemon } from '../test/support/daemon.ts';
import { closedLoad, type PacedResult, pacedLoad } from './support/paced-load.ts';
import type { BenchRow, BenchTable } from './table.ts';

const RATE = 500;
const ROUNDS = 5;
const ROUND_SECONDS = 2;
const WARM_UP = 1_500;
const PARALLEL = 16;
const CLOSED_TOTAL = 3_000;
const AIM_P95_MS = 20;
const TOOL = 'svc_agents_list';

type Do = () => Promise<void>;

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

function message(id: number, modern: boolean): string {
  const params = { name: TOOL, arguments: {}, ...(modern ? { _meta: META } : {}) };
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

function overHttp(url: string, method: string, headers: Record<string, string>, body: string, expected: string): Do {
  const target = new URL(url);
  return () =>
    new Promise((resolve, reject) => {
      const outgoing = request(target, { method, agent, headers }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        answer.on('end', () => (text.includes(expected) ? resolve() : reject(new Error(text))));
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
}

function mcp(daemon: TestDaemon, aid: string, modern: boolean): Do {
  const era: Record<string, string> = modern
    ? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': TOOL }
    : { 'mcp-protocol-version': '2025-11-25' };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...era };
  return overHttp(`${daemon.api}/mcp/`, 'POST', headers, message(1, modern), aid);
}

/** A process that speaks MCP over stdio. */
class Stdio {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (line: string) => void>();
  #id = 0;

  constructor(dataDir: string, args: readonly string[] = []) {
    this.#child = spawn(process.execPath, ['bin/svcd', '--data-dir', dataDir, '--mcp-stdio', ...args], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...process.env, SVCD_MDNS: 'false', SVCD_LOG_LEVEL: 'warn' },
    });
    if (this.#child.stdout === null) throw new Error('no stdout');
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const { id } = JSON.parse(line) as { id: number };
      this.#waiting.get(id)?.(line);
      this.#waiting.delete(id);
    });
  }

  readonly call: Do = async () => {
    const id = ++this.#id;
    const answer = new Promise<string>((resolve) => this.#waiting.set(id, resolve));
    this.#child.stdin?.write(`${message(id, true)}\n`);
    if (!(await answer).includes('"structuredContent"')) throw new Error('the tool failed');
  };

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.stdin?.end();
    await ended;
  }
}

interface Target {
  readonly what: string;
  readonly call: Do;
}

/** The best of several rounds, alternating, so that other work on the machine affects all equally. */
async function measure(targets: readonly Target[]): Promise<PacedResult[]> {
  for (const { call } of targets)
    for (let i = 0; i < WARM_UP; i += PARALLEL) await Promise.all(Array.from({ length: PARALLEL }, call));
  const best: PacedResult[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { call }] of targets.entries()) {
      const result = await pacedLoad(call, RATE, ROUND_SECONDS);
      if (best[i] === undefined || result.p95Ms < best[i].p95Ms) best[i] = result;
    }
  }
  return best;
}

/** CPU time of the daemon per call, averaged over many calls, microseconds. */
async function cpuPerCall(daemon: TestDaemon, call: Do): Promise<number> {
  const cpuSeconds = async (): Promise<number> => {
    const text = String((await daemon.request('GET', '/metrics')).body);
    const lines = text.matchAll(/^process_cpu_(?:user|system)_seconds_total (\S+)$/gm);
    return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const before = await cpuSeconds();
  await closedLoad(call, PARALLEL, CLOSED_TOTAL);
  return (((await cpuSeconds()) - before) * 1e6) / CLOSED_TOTAL;
}

function rows(targets: readonly Target[], results: readonly PacedResult[]): BenchRow[] {
  const [plain] = results;
  if (plain === undefined) return [];
  return targets.slice(1).flatMap(({ what }, i) => {
    const { p50Ms = 0, p95Ms = 0, perSecond = 0 } = results[i + 1] ?? {};
    const ok = p95Ms <= AIM_P95_MS && perSecond >= RATE * 0.98;
    const aim = `≤ ${AIM_P95_MS} ms`;
    return [
      { what: `${what}, p50`, value: p50Ms, unit: 'ms', yardstick: plain.p50Ms, ratio: p50Ms / plain.p50Ms },
      { what: `${what}, p95`, value: p95Ms, unit: 'ms', yardstick: plain.p95Ms, ratio: p95Ms / plain.p95Ms, aim, ok },
    ];
  });
}

export async function run(): Promise<BenchTable> {
  const service = fork(new URL('support/plain-http.ts', import.meta.url));
  const [{ port }] = (await once(service, 'message')) as [{ port: number }];
  await using daemon = await TestDaemon.start({ env: { SVCD_LOG_LEVEL: 'warn' } });
  const aid = await daemon.newAgent();
  const json = { 'content-type': 'application/json' };
  const plain = overHttp(`http://127.0.0.1:${port}/`, 'POST', json, message(1, true), 'answer');
  const rest = overHttp(`${daemon.api}/agents`, 'GET', {}, '', aid);
  const modern = mcp(daemon, aid, true);
  const proxy = new Stdio(daemon.dataDir);
  const beside: Target[] = [
    { what: 'plain', call: plain },
    { what: 'over REST', call: rest },
    { what: 'HTTP, revision of 2026', call: modern },
    { what: 'HTTP, revisions of 2025', call: mcp(daemon, aid, false) },
    { what: 'stdio through a daemon', call: proxy.call },
  ];
  const results = await measure(beside);
  const cpu = await cpuPerCall(daemon, modern);
  const restCpu = await cpuPerCall(daemon, rest);
  const rate = await closedLoad(modern, PARALLEL, CLOSED_TOTAL);
  const plainRate = await closedLoad(plain, PARALLEL, CLOSED_TOTAL);
  await proxy.stop();
  await daemon.kill('SIGTERM');
  const node = new Stdio(daemon.dataDir, ['--listen', '127.0.0.1:0']);
  const alone: Target[] = [
    { what: 'plain', call: plain },
    { what: 'stdio, the node itself', call: node.call },
  ];
  const own = await measure(alone);
  await node.stop();
  service.disconnect();
  agent.destroy();
  return {
    title: `MCP: ${RATE} calls of ${TOOL} a second, best of ${ROUNDS} rounds; yardstick: a plain Node server`,
    rows: [
      ...rows(beside, results),
      ...rows(alone, own),
      {
        what: `HTTP, calls per second, ${PARALLEL} in parallel`,
        value: rate,
        unit: '/s',
        yardstick: plainRate,
        ratio: rate / plainRate,
      },
      { what: 'CPU of a call; yardstick: over REST', value: cpu, unit: 'µs', yardstick: restCpu, ratio: cpu / restCpu },
    ],
  };
}
