/**
 * `svcd --mcp-stdio`: beside a running daemon a proxy to it, otherwise the node itself, without API and panel. Several on
 * one data directory share a node: the first is it, the others go through it, and when it ends one of them is the next.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../foundation/clock.ts';
import { readDaemonInfo } from '../foundation/data-dir/daemon-info.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import type { Log } from '../foundation/log.ts';
import { VERSION } from '../foundation/version.ts';
import { safeText } from '../surfaces/cli/text.ts';
import { DaemonLink } from '../surfaces/mcp/daemon-link.ts';
import { SharedNode } from '../surfaces/mcp/shared-node.ts';
import { type StdioSession, type StdioStreams, serveProxy, serveTools } from '../surfaces/mcp/stdio.ts';
import { serveFailure } from '../surfaces/mcp/stdio-failure.ts';
import { claimStdout } from '../surfaces/mcp/stdout.ts';
import type { DaemonArguments } from './args.ts';
import type { Daemon } from './daemon.ts';
import { STOP_TIMEOUT_MS } from './life.ts';
import { onStopSignal } from './signals.ts';

/** A node without an API. */
type StdioNode = Pick<Daemon, 'tools' | 'stop' | 'announceMcp'> & { readonly log: Log };

/** How long to wait for another stdio process to leave the data directory, or to say where it serves. */
const HANDOVER_MS = 10_000;
const HANDOVER_INTERVAL_MS = 100;

/** The node of this process, and the door through which other MCP clients share it. */
class OwnNode {
  readonly #dataDir: string;
  readonly #start: () => Promise<StdioNode>;
  #node: StdioNode | null = null;
  #door: SharedNode | null = null;
  /** What is under way since a shared node is gone. */
  #succeeding: Promise<void> | null = null;
  #ending = false;

  constructor(dataDir: string, start: () => Promise<StdioNode>) {
    this.#dataDir = dataDir;
    this.#start = start;
  }

  /**
   * Becomes the node, unless a daemon or another stdio process is it. The lock decides, not a look before: two may start
   * at the same moment.
   * @param gone the process that was the node and ends: it is waited for
   * @throws SvcError as the start of a daemon, but for `already_running`
   */
  async become(gone?: number): Promise<StdioNode | null> {
    const giveUpAt = systemClock.now() + HANDOVER_MS;
    while (!this.#ending) {
      try {
        const node = await this.#start();
        this.#node = node;
        const { tools, log } = node;
        this.#door = new SharedNode({ version: VERSION }, { tools, clock: systemClock, log });
        node.announceMcp(await this.#door.start());
        return node;
      } catch (error) {
        if (!(error instanceof SvcError && error.code === 'already_running')) throw error;
        const info = readDaemonInfo(this.#dataDir);
        if (typeof error.details?.['api_addr'] === 'string') return null;
        const serves = info !== null && info.mcp !== undefined && info.pid !== gone;
        if (serves || systemClock.now() >= giveUpAt) return null;
      }
      // Not a timer of the clock: those keep no process alive, and nothing else does yet.
      await delay(HANDOVER_INTERVAL_MS);
    }
    return null;
  }

  /** Becomes the node when the one that was shared is gone; `then` follows, whoever it is now. */
  succeed(gone: number, then: () => void): void {
    const failed = (error: unknown): void =>
      void process.stderr.write(`svcd: ${error instanceof Error ? safeText(error.message) : 'unknown failure'}\n`);
    this.#succeeding ??= this.become(gone)
      .then(() => {}, failed)
      .finally(() => {
        this.#succeeding = null;
        then();
      });
  }

  async end(): Promise<void> {
    this.#ending = true;
    await this.#succeeding;
    await this.#door?.close();
    await this.#node?.stop('the MCP client went away');
  }
}

function serveLink(
  args: DaemonArguments,
  token: string | undefined,
  own: OwnNode,
  streams: StdioStreams,
): StdioSession {
  const { dataDir, configFile } = args;
  const profiles = args.mcpStdio?.profiles;
  const onNodeGone = (pid: number): void => own.succeed(pid, () => link.watch());
  const link = new DaemonLink({ dataDir, configFile, token, profiles }, { clock: systemClock, onNodeGone });
  link.watch();
  return serveProxy({ version: VERSION }, { ...streams, link, clock: systemClock });
}

/** Serves until the client goes away, or the process is asked to end. */
export async function runMcpStdio(
  args: DaemonArguments,
  environment: NodeJS.ProcessEnv,
  startNode: () => Promise<StdioNode>,
): Promise<void> {
  const streams = { input: process.stdin, output: claimStdout() };
  const own = new OwnNode(args.dataDir, startNode);
  let node: StdioNode | null;
  try {
    node = await own.become();
  } catch (error) {
    // A person at a terminal reads what is said there.
    if (error instanceof SvcError && !process.stdin.isTTY) await serveFailure(streams, error);
    throw error;
  }
  const session =
    node === null
      ? serveLink(args, environment['SVC_TOKEN'], own, streams)
      : serveTools(
          { version: VERSION, profiles: args.mcpStdio?.profiles },
          { ...streams, tools: node.tools, clock: systemClock, log: node.log },
        );
  onStopSignal(process, () => detach(session.close()));
  await session.closed;
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  await own.end();
}
