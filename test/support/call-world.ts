/** Calls between two nodes over in-memory links: a calling agent, a called agent, and a real web service. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { Callers } from '../../src/capabilities/access/callers.ts';
import { CallServer } from '../../src/capabilities/calls/call-server.ts';
import { CallSigner } from '../../src/capabilities/calls/evidence/call-signer.ts';
import { EvidenceCheck } from '../../src/capabilities/calls/evidence/evidence-check.ts';
import { type FetchRequest, type FetchResult, fetchWhole } from '../../src/capabilities/calls/fetch-service.ts';
import { pairs } from '../../src/capabilities/calls/headers.ts';
import { type Call, type CallResponse, HttpCaller } from '../../src/capabilities/calls/http-caller.ts';
import type { BoundService } from '../../src/capabilities/calls/upstream.ts';
import { toBase64 } from '../../src/foundation/base64.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { DelegationVerifier } from '../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { Traces } from '../../src/foundation/traces/traces.ts';
import type { AccessRequest } from '../../src/network/links/types.ts';
import { type LinkNode, LinkWorld, readAll } from './link-world.ts';

/** The key of the proofs for services. */
export const PROOF_KEY: Uint8Array = new Uint8Array(32).fill(7);

export interface CallWorld {
  readonly clock: Clock;
  readonly links: LinkWorld;
  readonly near: LinkNode;
  readonly far: LinkNode;
  readonly local: Aid;
  readonly remote: Aid;
  readonly caller: HttpCaller;
  readonly server: CallServer;
  readonly nearTraces: Traces;
  readonly farTraces: Traces;
  /** Callers recorded at `far`. */
  readonly callers: Callers;
  readonly fetch: (request: FetchRequest, signal: AbortSignal) => Promise<FetchResult & { readonly body: string }>;
  /** Bound services by agent. */
  readonly bound: Map<Aid, BoundService>;
  /** Callers that `far` allowed by name. */
  readonly named: Set<Aid>;
  /** True if calls from `near` carry evidence. */
  givesEvidence: boolean;
  /** Called when a link opens, and for each request. */
  access: (request: AccessRequest) => void | Promise<void>;
  /** Limits the caller to these MCP tools. */
  tools: readonly string[] | null;
  /** With `tools`, everything else of the MCP server too. */
  isServer: boolean;
  /** The descriptions of the calls that were checked. */
  readonly asked: string[];
  /** A call from `local` to `remote`. */
  call(call?: Partial<Call>): Promise<CallResponse>;
}

export interface CallWorldOptions {
  /** Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Share of the calls that are traced. Default: 100. */
  readonly tracePercent?: number;
}

export async function callWorld(
  t: TestContext,
  { clock = systemClock, tracePercent = 100 }: CallWorldOptions = {},
): Promise<CallWorld> {
  const links = new LinkWorld(clock);
  links.network.acknowledges = true;
  const near = await links.node();
  const far = await links.node();
  const local = near.host().aid;
  const remote = far.host().aid;
  const bound = new Map<Aid, BoundService>();
  const signer = new CallSigner(
    clock,
    (aid) => (world.givesEvidence ? (near.agents.get(aid) ?? null) : null),
    randomBytes,
  );
  const tracing = (): Traces => new Traces({ clock, randomBytes, percent: tracePercent });
  const [nearTraces, farTraces] = [tracing(), tracing()];
  const caller = new HttpCaller(near.links, clock, { signer, traces: nearTraces });
  const callers = new Callers(clock, () => false);
  const server = new CallServer({
    links: far.links,
    clock,
    log: silentLog,
    callerKey: () => PROOF_KEY,
    evidence: new EvidenceCheck(clock, new DelegationVerifier(), () => 0),
    watch: () => {},
    serviceOf: (aid) => bound.get(aid) ?? null,
    authorize: (request) => world.access(request),
    enter: async (request, asked) => {
      await world.access(request);
      world.asked.push(asked());
      return { tools: world.tools, isServer: world.isServer, begin: () => () => {} };
    },
    isNamed: ({ caller }) => world.named.has(caller),
    callers,
    traces: farTraces,
  });
  await server.start();
  const world: CallWorld = {
    clock,
    links,
    near,
    far,
    local,
    remote,
    caller,
    server,
    nearTraces,
    farTraces,
    callers,
    fetch: async (request, signal) => {
      const result = await fetchWhole(caller, clock, request, signal);
      return { ...result, body: toBase64(result.bytes.bytes()) };
    },
    bound,
    named: new Set(),
    givesEvidence: false,
    access: () => {},
    tools: null,
    isServer: false,
    asked: [],
    call: (call = {}) => caller.request(local, remote, { method: 'GET', path: '/', headers: [], body: null, ...call }),
  };
  far.authorize = (request) => world.access(request);
  t.after(async () => {
    caller.stop();
    await server.stop();
    await links[Symbol.asyncDispose]();
  });
  return world;
}

/** A local web service that stops with the test. */
export async function webService(
  t: TestContext,
  listener: RequestListener,
): Promise<{ readonly bound: BoundService; readonly server: Server; readonly connections: Set<Socket> }> {
  const server = createServer({ maxHeaderSize: 64 * 1024 }, listener);
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    for (const socket of connections) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    bound: { scheme: 'http', host: '127.0.0.1', port, acceptsCalls: true, verifyCertificate: true },
    server,
    connections,
  };
}

export async function textOf(answer: CallResponse): Promise<string> {
  return (await readAll(answer.body)).toString();
}

/** All values of a header in order. The name is lower case. */
export function valuesOf(raw: readonly string[], name: string): string[] {
  return [...pairs(raw)].filter(([key]) => key.toLowerCase() === name).map(([, value]) => value);
}

/** The first value of a header, or undefined. */
export function headerOf(raw: readonly string[], name: string): string | undefined {
  const at = raw.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === name.toLowerCase());
  return at < 0 ? undefined : raw[at + 1];
}
