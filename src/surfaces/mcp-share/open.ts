/** From what is typed to a port that shares an MCP server. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { Gate, type GateParts } from './gate.ts';
import { lookAtCommand, lookAtUrl, type Seen } from './look.ts';
import { serverEnvironment } from './server-process.ts';
import { StdioShare } from './stdio-share.ts';
import { type ToolLists, ToolRules } from './tool-rules.ts';
import { UrlShare } from './url-share.ts';

export interface ShareOptions {
  /** Of the owner, whose program the server is. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: (text: string) => void;
  readonly lists: ToolLists;
  readonly clock: Clock;
  /** As of a server's command. */
  readonly graceMs?: number;
  /** Ends the look at a server. */
  readonly signal?: AbortSignal;
}

export interface ShareOpening {
  readonly seen: Seen;
  /** Begins to share. */
  readonly begin: (agent: GateParts['agent']) => Promise<Gate>;
}

/** @param next what to do where it does not answer */
async function looked(looking: Promise<Seen>, next: string): Promise<Seen> {
  try {
    return await looking;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unknown failure';
    throw new SvcError('connect_failed', {
      message: `The server does not answer as an MCP server: ${why}. ${next}`,
      cause,
    });
  }
}

/**
 * Looks at a server; nothing is shared yet.
 * @throws SvcError `connect_failed` where it cannot be started, or is no MCP server
 */
export async function open(
  server: { readonly command: string; readonly args: readonly string[] } | URL,
  { environment, log, lists, clock, graceMs, signal }: ShareOptions,
): Promise<ShareOpening> {
  const rules = new ToolRules(lists);
  if (server instanceof URL) {
    const seen = await looked(
      lookAtUrl(server, signal),
      'svc mcp share takes the whole address of one, such as http://127.0.0.1:3000/mcp',
    );
    return { seen, begin: (agent) => Gate.open({ agent, backend: new UrlShare(server, rules), clock, log }) };
  }
  const command = { ...server, environment: serverEnvironment(environment), log, graceMs };
  const seen = await looked(
    lookAtCommand(command, signal),
    'Start what stands behind svc mcp share by itself to see why.',
  );
  const { isModern } = seen;
  return {
    seen,
    begin: (agent) => Gate.open({ agent, backend: new StdioShare({ command, isModern, rules, clock }), clock, log }),
  };
}
