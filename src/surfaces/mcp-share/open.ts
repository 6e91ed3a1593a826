/** Opens a port for sharing an MCP server from the arguments of the command. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import { Gate, type GateParts, type GatePorts, type ToolLists, ToolRules } from './gate.ts';
import { type Inspection, inspectCommand, inspectUrl } from './inspect.ts';
import { serverEnvironment } from './server-process.ts';
import { StdioShare } from './stdio-share.ts';
import { UrlShare } from './url-share.ts';

export interface ShareOptions {
  /** The owner's environment, for the server. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: (text: string) => void;
  readonly lists: ToolLists;
  readonly clock: Clock;
  /** See `ServerCommand`. */
  readonly graceMs?: number;
  /** Ends the inspection of a server. */
  readonly signal?: AbortSignal;
}

export interface ShareOpening {
  readonly seen: Inspection;
  /** Starts sharing. */
  readonly begin: (agent: GateParts['agent']) => Promise<Gate>;
}

/** @param next advice if the server does not respond */
async function awaitInspection(looking: Promise<Inspection>, next: string): Promise<Inspection> {
  try {
    return await looking;
  } catch (cause) {
    if (cause instanceof SvcError && cause.code === 'cancelled') throw cause;
    const why = cause instanceof Error ? cause.message : 'unknown error';
    throw new SvcError('connect_failed', {
      message: `The server does not respond as an MCP server: ${why.replace(/[.]$/, '')}. ${next}`,
      cause,
    });
  }
}

/**
 * Inspects a server without sharing it yet.
 * @throws SvcError `connect_failed` if it cannot be started or is not an MCP server
 */
export async function open(
  server: { readonly command: string; readonly args: readonly string[] } | URL,
  { environment, log, lists, clock, graceMs, signal }: ShareOptions,
): Promise<ShareOpening> {
  const rules = new ToolRules(lists);
  const inspecting = { clock, signal, onSilent: (text: string) => log(`svc: ${text}\n`) };
  if (server instanceof URL) {
    const seen = await awaitInspection(
      inspectUrl(server, inspecting),
      'svc mcp share takes the whole address of one, such as http://127.0.0.1:3000/mcp',
    );
    return { seen, begin: (agent) => Gate.open({ agent, backend: new UrlShare(server, rules), clock, log }) };
  }
  const command = { ...server, environment: serverEnvironment(environment), log, graceMs };
  const seen = await awaitInspection(
    inspectCommand(command, inspecting),
    'Run the command after "svc mcp share" alone to see the reason.',
  );
  const { isModern } = seen;
  return {
    seen,
    begin: (agent) => Gate.open({ agent, backend: new StdioShare({ command, isModern, rules, clock }), clock, log }),
  };
}

/** Shares a command that was inspected earlier, at the port that svcd chose. @param isModern see `Inspection` */
export function wake(
  server: { readonly command: string; readonly args: readonly string[] },
  isModern: boolean,
  { agent, ports }: { readonly agent: GateParts['agent']; readonly ports: GatePorts },
  { environment, log, lists, clock }: ShareOptions,
): Promise<Gate> {
  const command = { ...server, environment: serverEnvironment(environment), log };
  const backend = new StdioShare({ command, isModern, rules: new ToolRules(lists), clock });
  return Gate.open({ agent, backend, clock, log, ports });
}
