/** Looks at a server before it is shared: does it run, which revisions does it know, which tools has it? */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { detach } from '../../foundation/detached.ts';
import { VERSION } from '../../foundation/version.ts';
import { MODERN_REVISIONS } from '../mcp/stdio-transport.ts';
import { type ServerCommand, stdioTransport } from './server-process.ts';

/** How long a server may take to start and say what it is, milliseconds: some are fetched from a registry first. */
const LOOK_TIMEOUT_MS = 60_000;
/** Tools that are asked for, in pages. */
const MAX_PAGES = 20;

export interface Seen {
  /** What it calls itself; null where it asks for authorization first. */
  readonly title: string | null;
  /** True where it knows revisions without sessions. */
  readonly isModern: boolean;
  /** Names; empty where it has none, or does not show them yet. */
  readonly tools: readonly string[];
}

async function toolsOf(client: Client): Promise<string[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const names: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await client.listTools(cursor === undefined ? {} : { cursor }, { timeout: LOOK_TIMEOUT_MS });
    names.push(...answer.tools.map(({ name }) => name));
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return names;
}

async function look(transport: Transport, signal: AbortSignal | undefined): Promise<Seen> {
  const client = new Client({ name: 'svc', version: VERSION }, { versionNegotiation: { mode: 'auto' } });
  const stop = (): void => detach(client.close());
  signal?.addEventListener('abort', stop, { once: true });
  try {
    signal?.throwIfAborted();
    await client.connect(transport, { timeout: LOOK_TIMEOUT_MS });
    const info = client.getServerVersion();
    const isModern = MODERN_REVISIONS.includes(client.getNegotiatedProtocolVersion() ?? '');
    return { title: info?.title ?? info?.name ?? '', isModern, tools: await toolsOf(client) };
  } finally {
    signal?.removeEventListener('abort', stop);
    await Promise.all([client.close(), transport.close()]);
  }
}

/** @throws what the server or the start of it gives */
export function lookAtCommand(what: ServerCommand, signal?: AbortSignal): Promise<Seen> {
  return look(stdioTransport(what, null), signal);
}

/** @throws as `lookAtCommand`; one that asks for authorization is there */
export async function lookAtUrl(url: URL, signal?: AbortSignal): Promise<Seen> {
  try {
    return await look(new StreamableHTTPClientTransport(url), signal);
  } catch (error) {
    if (needsAuthorization(error)) return { title: null, isModern: true, tools: [] };
    throw error;
  }
}

function needsAuthorization(error: unknown): boolean {
  return error instanceof Error && (error.name === 'UnauthorizedError' || Reflect.get(error, 'status') === 401);
}
