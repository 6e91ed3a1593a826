/** `svcd --mcp-stdio`: beside a running daemon a proxy to it, otherwise the node itself, without API and panel. */

import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../foundation/clock.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';
import { VERSION } from '../foundation/version.ts';
import { DaemonLink } from '../surfaces/mcp/daemon-link.ts';
import { type StdioSession, serveProxy, serveTools } from '../surfaces/mcp/stdio.ts';
import { claimStdout } from '../surfaces/mcp/stdout.ts';
import type { DaemonArguments } from './args.ts';
import type { Daemon } from './daemon.ts';
import { STOP_TIMEOUT_MS } from './life.ts';

/** A node without an API. */
type StdioNode = Pick<Daemon, 'tools' | 'stop'> & { readonly log: Log };

/**
 * How long to wait for another stdio process to leave the data directory: clients start one to see
 * what it speaks, end it, and start the next at once.
 */
const HANDOVER_MS = 5_000;
const HANDOVER_INTERVAL_MS = 100;

/** The node, or null where a daemon runs. The lock decides, not a look before: two may start at the same moment. */
async function startOrNull(startNode: () => Promise<StdioNode>): Promise<StdioNode | null> {
  const giveUpAt = systemClock.now() + HANDOVER_MS;
  for (;;) {
    try {
      return await startNode();
    } catch (error) {
      if (!(error instanceof SvcError && error.code === 'already_running')) throw error;
      if (typeof error.details?.['api_addr'] === 'string' || systemClock.now() >= giveUpAt) return null;
    }
    // Not a timer of the clock: those keep no process alive, and nothing else does yet.
    await delay(HANDOVER_INTERVAL_MS);
  }
}

/** Serves until the client goes away, or the process is asked to end. */
export async function runMcpStdio(
  args: DaemonArguments,
  environment: NodeJS.ProcessEnv,
  startNode: () => Promise<StdioNode>,
): Promise<void> {
  const streams = { input: process.stdin, output: claimStdout() };
  const profiles = args.mcpStdio?.profiles;
  const node = await startOrNull(startNode);
  let session: StdioSession;
  if (node === null) {
    const { dataDir, configFile } = args;
    const token = environment['SVC_TOKEN'];
    const link = new DaemonLink({ dataDir, configFile, token, profiles }, { clock: systemClock });
    session = serveProxy({ version: VERSION }, { ...streams, link });
  } else {
    session = serveTools({ version: VERSION, profiles }, { ...streams, tools: node.tools, log: node.log });
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => detach(session.close()));
  await session.closed;
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  await node?.stop('the MCP client went away');
}
