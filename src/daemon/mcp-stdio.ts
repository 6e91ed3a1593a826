/**
 * `svcd --mcp-stdio`: a proxy to the running daemon, or without a daemon a node without API and panel. The running
 * daemon is that of the data directory, or else the one at `api_addr`, such as a system service. Several
 * processes on one data directory share one node: the first runs it, and later processes connect to it. When the first exits, another process takes its role.
 */

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DEFAULT_API_ADDR, formatAddress, isEveryInterface, parseAddress } from '../foundation/address.ts';
import { systemClock } from '../foundation/clock.ts';
import { readConfigFile } from '../foundation/config/file.ts';
import { environmentName } from '../foundation/config/schema.ts';
import { readDaemonInfo } from '../foundation/data-dir/daemon-info.ts';
import { DATABASE_FILE, defaultDataDir } from '../foundation/data-dir/paths.ts';
import { detach } from '../foundation/detached.ts';
import { SvcError } from '../foundation/errors.ts';
import { memberOf } from '../foundation/json.ts';
import type { Log } from '../foundation/log.ts';
import { VERSION } from '../foundation/version.ts';
import { httpFetch } from '../surfaces/cli/daemon-fetch.ts';
import { safeText } from '../surfaces/cli/text.ts';
import { DaemonLink } from '../surfaces/mcp/daemon-link.ts';
import { SharedNode } from '../surfaces/mcp/shared-node.ts';
import { type StdioSession, type StdioStreams, serveFailure, serveProxy, serveTools } from '../surfaces/mcp/stdio.ts';
import { claimStdout } from '../surfaces/mcp/stdout.ts';
import type { DaemonArguments } from './args.ts';
import type { Daemon } from './daemon.ts';
import { STOP_TIMEOUT_MS } from './life.ts';
import { onStopSignal } from './signals.ts';

/** A node without an API. */
type StdioNode = Pick<Daemon, 'tools' | 'channel' | 'stop' | 'announceMcp'> & { readonly log: Log };

/** Time limit for another stdio process to release the data directory or to publish its address, in milliseconds. */
const HANDOVER_MS = 10_000;
const HANDOVER_INTERVAL_MS = 100;

/** The node of this process, and the socket through which other MCP clients share it. */
class LocalNode {
  readonly #dataDir: string;
  readonly #start: () => Promise<StdioNode>;
  #node: StdioNode | null = null;
  #door: SharedNode | null = null;
  /** Pending takeover after the shared node has exited. */
  #succeeding: Promise<void> | null = null;
  #ending = false;

  constructor(dataDir: string, start: () => Promise<StdioNode>) {
    this.#dataDir = dataDir;
    this.#start = start;
  }

  /**
   * Starts the node, unless a daemon or another stdio process runs it. The lock file decides, because two processes may
   * start at the same time.
   * @param gone the exiting process that ran the node; its lock is awaited
   * @throws SvcError as the start of a daemon, except `already_running`
   */
  async become(gone?: number): Promise<StdioNode | null> {
    const giveUpAt = systemClock.monotonic() + HANDOVER_MS;
    while (!this.#ending) {
      try {
        const node = await this.#start();
        this.#node = node;
        const { tools, channel, log } = node;
        this.#door = new SharedNode({ version: VERSION }, { tools, channel, clock: systemClock, log });
        node.announceMcp(await this.#door.start());
        return node;
      } catch (error) {
        if (!(error instanceof SvcError && error.code === 'already_running')) throw error;
        const info = readDaemonInfo(this.#dataDir);
        if (typeof error.details?.['api_addr'] === 'string') return null;
        const serves = info !== null && info.mcp !== undefined && info.pid !== gone;
        if (serves || systemClock.monotonic() >= giveUpAt) return null;
      }
      // Not a timer of `Clock`, which would not keep the process running.
      await delay(HANDOVER_INTERVAL_MS);
    }
    return null;
  }

  /** Ends an attempt to become the node. */
  giveUp(): void {
    this.#ending = true;
  }

  /** Takes over the node when the shared one has exited. Then calls `then`, whichever process runs it now. */
  succeed(gone: number, then: () => void): void {
    const failed = (error: unknown): void =>
      void process.stderr.write(`svcd: ${error instanceof Error ? safeText(error.message) : 'unknown error'}\n`);
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
    await this.#node?.stop('the MCP client disconnected');
  }
}

/** Time limit for the response of a program at `api_addr`, milliseconds. */
const PROBE_MS = 3_000;

/**
 * The API of a daemon that uses another data directory, such as that of a system service: the configured `api_addr`, if
 * a svcd answers there. No token is sent.
 */
async function otherDaemon(
  { configFile, flags }: DaemonArguments,
  environment: NodeJS.ProcessEnv,
): Promise<string | null> {
  const given = flags.api_addr ?? (environment[environmentName('api_addr')] || undefined);
  const api = parseAddress(given ?? readConfigFile(configFile).values.api_addr ?? DEFAULT_API_ADDR);
  if (api === null || api.port === 0) return null;
  const address = formatAddress({ ...api, host: isEveryInterface(api.host) ? '127.0.0.1' : api.host });
  const init = {
    method: 'GET',
    headers: {},
    body: null,
    redirect: 'error' as const,
    signal: AbortSignal.timeout(PROBE_MS),
  };
  try {
    const answer = await httpFetch(`http://${address}/status`, init);
    const body: unknown = JSON.parse(await answer.text());
    const isSvcd = memberOf(body, 'error') === 'unauthorized' || typeof memberOf(body, 'node_aid') === 'string';
    return isSvcd ? address : null;
  } catch {
    return null;
  }
}

/** True if no node has used the default data directory, and the user names no other one. */
function hasNoNode(dataDir: string): boolean {
  return dataDir === resolve(defaultDataDir()) && !existsSync(join(dataDir, DATABASE_FILE));
}

function serveLink(
  args: DaemonArguments,
  { token, api }: { readonly token: string | undefined; readonly api: string | null },
  own: LocalNode,
  streams: StdioStreams,
): StdioSession {
  const { dataDir, configFile } = args;
  const { profiles, isChannel, permissions } = args.mcpStdio ?? {};
  const options = { dataDir, configFile, token, profiles };
  if (api !== null) {
    process.stderr.write(`svcd: tools of the svcd that runs at ${api}, which uses another data directory\n`);
    const link = new DaemonLink({ ...options, api }, { clock: systemClock });
    return serveProxy({ version: VERSION, isChannel, permissions }, { ...streams, link, clock: systemClock });
  }
  const onNodeGone = (pid: number): void => own.succeed(pid, () => link.watch());
  const link = new DaemonLink(options, { clock: systemClock, onNodeGone });
  link.watch();
  return serveProxy({ version: VERSION, isChannel, permissions }, { ...streams, link, clock: systemClock });
}

/** Serves until the client disconnects or the process receives a stop signal. */
export async function runMcpStdio(
  args: DaemonArguments,
  environment: NodeJS.ProcessEnv,
  startNode: () => Promise<StdioNode>,
): Promise<void> {
  const stopped = Promise.withResolvers<void>();
  const streams = { input: process.stdin, output: claimStdout() };
  const own = new LocalNode(args.dataDir, startNode);
  let node: StdioNode | null = null;
  let api: string | null = null;
  // Registered before the start, so that a signal during the start also stops the node cleanly.
  onStopSignal(process, () => {
    setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
    own.giveUp();
    stopped.resolve();
  });
  try {
    if (hasNoNode(args.dataDir)) api = await otherDaemon(args, environment);
    if (api === null) node = await own.become();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'address_in_use') api = await otherDaemon(args, environment);
    // On a terminal, a user reads the error message instead.
    if (api === null && error instanceof SvcError && !process.stdin.isTTY)
      await Promise.race([serveFailure(streams, error), stopped.promise]);
    if (api === null) throw error;
  }
  const session =
    node === null
      ? serveLink(args, { token: environment['SVC_TOKEN'], api }, own, streams)
      : serveTools(
          { version: VERSION, ...args.mcpStdio },
          { ...streams, tools: node.tools, channel: node.channel, clock: systemClock, log: node.log },
        );
  detach(stopped.promise.then(() => session.close()));
  await session.closed;
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  await own.end();
}
