/** A shared MCP server without daemons: calls as a daemon sends them, and the client's view of a server. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, type ClientOptions, type Transport } from '@modelcontextprotocol/client';
import { callerProof } from '../../src/capabilities/calls/caller-proof.ts';
import { type Clock, systemClock, unixSeconds } from '../../src/foundation/clock.ts';
import { parseAid } from '../../src/foundation/identity/aid.ts';
import { newIdentity } from './identities.ts';

export const FIXTURE: string = fileURLToPath(new URL('./mcp-fixture.ts', import.meta.url));

/** The agent with the shared server, and its callers. */
export const AGENT = { aid: newIdentity().aid, key: randomBytes(32) };
export const ALICE: string = newIdentity().aid;
export const MALLORY: string = newIdentity().aid;

interface CallOptions {
  readonly key?: Uint8Array;
  readonly clock?: Clock;
  readonly send?: typeof fetch;
}

/** `fetch` with the headers that a daemon adds to a call. */
export function callOf(caller: string, { key = AGENT.key, clock = systemClock, send = fetch }: CallOptions = {}) {
  return async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const method = init.method ?? 'GET';
    const proof = callerProof(key, {
      caller: parseAid(caller),
      called: AGENT.aid,
      method,
      target: url.pathname + url.search,
      at: unixSeconds(clock),
    });
    const headers = new Headers(init.headers);
    headers.set('svc-caller-aid', caller);
    headers.set('svc-local-aid', AGENT.aid);
    headers.set('svc-caller-proof', proof);
    return send(url, { ...init, headers });
  };
}

export const LEGACY = '2025-11-25';
export const MODERN = '2026-07-28';

/** A client of a revision that answers requests of the server. */
export async function connected(transport: Transport, revision: string): Promise<Client> {
  const versionNegotiation: ClientOptions['versionNegotiation'] =
    revision === MODERN ? { mode: { pin: MODERN } } : { mode: 'legacy' };
  const client = new Client(
    { name: 'judge', version: '1.0.0' },
    { capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} }, versionNegotiation },
  );
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
  client.setRequestHandler('sampling/createMessage', () => ({
    role: 'assistant',
    content: { type: 'text', text: 'hi' },
    model: 'none',
  }));
  await client.connect(transport);
  return client;
}

async function output(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    return { threw: message, code };
  }
}

/** The result of a tool with progress, after each progress message was received. */
export async function countedBy(client: Client): Promise<{ answer: unknown; progress: readonly unknown[] }> {
  const progress: unknown[] = [];
  const seen = mkdtempSync(join(tmpdir(), 'svcd-progress-'));
  const onprogress = (one: { readonly progress: number }): void => {
    progress.push(one);
    writeFileSync(join(seen, String(one.progress)), '');
  };
  const answer = await output(client.callTool({ name: 'count', arguments: { seen } }, { onprogress }));
  rmSync(seen, { recursive: true });
  return { answer, progress };
}

/** Everything that a client sees of the fixture, to compare two paths to it. */
export async function everything(client: Client): Promise<Record<string, unknown>> {
  const call = (name: string, args: Record<string, unknown> = {}): Promise<unknown> =>
    output(client.callTool({ name, arguments: args }));
  return {
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    revision: client.getNegotiatedProtocolVersion(),
    tools: await output(client.listTools()),
    resources: await output(client.listResources()),
    templates: await output(client.listResourceTemplates()),
    resource: await output(client.readResource({ uri: 'note:7' })),
    prompts: await output(client.listPrompts()),
    prompt: await output(client.getPrompt({ name: 'greet', arguments: { who: 'Bob' } })),
    completion: await output(
      client.complete({ ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'who', value: '' } }),
    ),
    echo: await call('echo', { text: 'ä\u2028€', n: 1.5, deep: [{ a: null }], empty: {} }),
    failed: await call('fail'),
    unknown: await output(client.readResource({ uri: '' })),
    counted: await countedBy(client),
    cancelled: await output(client.callTool({ name: 'hang' }, { signal: AbortSignal.timeout(200) })),
    asked: await call('ask'),
    input: await call('input'),
    sampled: await call('sample'),
    big: await call('big', { size: 300_000 }),
    again: await call('echo', { still: 'there' }),
  };
}
