/**
 * The composition root. It creates foundation, network, capabilities and surfaces, each from the layers below, starts
 * them in the stages of `Life`, and stops them in reverse order.
 */
import type { Supervisor } from '../capabilities/update/types.ts';
import { formatAddress } from '../foundation/address.ts';
import type { SharedMcp } from '../foundation/data-dir/daemon-info.ts';
import { MemoryReleaser, processUsage, releaseMemory } from '../foundation/release-memory.ts';
import { VERSION } from '../foundation/version.ts';
import type { BoundOperation } from '../operations/operation.ts';
import type { ToolTable } from '../operations/tool-call.ts';
import type { AskChannel } from '../surfaces/mcp/channel.ts';
import { Api, ApiReference } from './api.ts';
import type { DaemonArguments } from './args.ts';
import { buildNodeWatch } from './capabilities/events.ts';
import { buildCapabilities } from './capabilities.ts';
import { type Foundation, openFoundation } from './foundation.ts';
import { Life, type ProcessControl } from './life.ts';
import { type Machine, thisMachine } from './machine.ts';
import { buildNetwork } from './network.ts';
import { buildPanel } from './panel.ts';
import { type Bound, connectable } from './status.ts';
import { buildSurfaces } from './surfaces.ts';
import { buildUpdater } from './update.ts';

export class Daemon {
  readonly #life: Life;
  readonly #addresses: Bound;
  /** The daemon's log. */
  readonly log: Foundation['log'];
  /** The operations as MCP tools. */
  readonly tools: ToolTable;
  readonly operations: readonly BoundOperation[];
  /** Items that arrive, for a session of an assistant. */
  readonly channel: AskChannel;
  /** An agent was registered when the daemon started. */
  readonly hasAgents: boolean;
  /** Publishes to other MCP clients of this user how to connect to a node without an API. */
  readonly announceMcp: (mcp: SharedMcp) => void;

  private constructor(
    life: Life,
    addresses: Bound,
    { log, dataDir }: Foundation,
    { tools, operations, channel, hasAgents }: Pick<Daemon, 'tools' | 'operations' | 'channel' | 'hasAgents'>,
  ) {
    this.#life = life;
    this.#addresses = addresses;
    this.log = log;
    this.tools = tools;
    this.operations = operations;
    this.channel = channel;
    this.hasAgents = hasAgents;
    this.announceMcp = (mcp) => dataDir.announceMcp(mcp);
  }

  /**
   * Starts a daemon with its API, or without it for MCP over stdio. If a part fails, everything acquired is released.
   * @param supervisor the supervisor if this process runs as a system service
   * @param stop stops the process
   * @param machine runs it
   * @throws SvcError `already_running`, `address_in_use`, `network_unavailable`, `config_invalid`, `key_locked`, `store_corrupt`,
   *   `not_writable`
   */
  static async start(
    args: DaemonArguments,
    environment: NodeJS.ProcessEnv,
    supervisor: Supervisor | null = null,
    stop: ProcessControl['stop'] = () => {},
    machine: Machine = thisMachine(),
  ): Promise<Daemon> {
    const life = new Life();
    try {
      const servesApi = args.mcpStdio === undefined;
      const api = new ApiReference(servesApi);
      const foundation = await openFoundation(args, environment, life, machine);
      const network = await buildNetwork(foundation, machine);
      const capabilities = buildCapabilities(foundation, network, api);
      const updater = buildUpdater(foundation, environment, supervisor);
      buildNodeWatch(foundation, network, capabilities, updater);
      const bound = (): Bound => ({
        api_addr: api.address === null ? '' : formatAddress(api.address),
        dht_addr: formatAddress(network.records.address),
        quic_addr: formatAddress(network.endpoint.address),
      });
      const panel = buildPanel(foundation, () => bound().api_addr, environment);
      const parts = { ...capabilities, updater, panel };
      const ending = { stop, restart: supervisor === null ? null : () => supervisor.restart() };
      const { rest, tools, operations, channel } = buildSurfaces(foundation, network, parts, bound, ending);
      api.attach(rest);
      if (servesApi)
        life.add('api', new Api({ streams: [capabilities.eventStreams, capabilities.nodeEventStreams], rest }));
      // Stopped before the API, which waits for requests in progress.
      life.add('api', capabilities.eventWaits);
      // After the API, which programs use.
      life.add('api', capabilities.hooks);
      life.add('api', capabilities.leases);
      if (machine.releasesMemory)
        life.add('acting', new MemoryReleaser({ ...foundation, usage: processUsage, release: releaseMemory }));
      await life.begin();

      const { dataDir, log, node } = foundation;
      const hasAgents = capabilities.registry.list(1).agents.length > 0;
      const api_addr = connectable(bound().api_addr);
      if (servesApi) dataDir.announce(api_addr);
      if (servesApi && supervisor === null) panel.openAtStart();
      log.info({ version: VERSION, node_aid: node.aid, ...bound() }, 'svcd is ready');
      return new Daemon(life, { ...bound(), api_addr }, foundation, { tools, operations, channel, hasAgents });
    } catch (error) {
      await life.end();
      throw error;
    }
  }

  /** The addresses to which clients and other nodes connect. */
  addresses(): Bound {
    return this.#addresses;
  }

  async stop(reason: string): Promise<void> {
    this.log.info({ reason }, 'stopping');
    try {
      await this.#life.end();
      this.log.info({}, 'stopped');
    } catch (error) {
      this.log.error({ error }, 'stopped with errors');
      throw error;
    } finally {
      this.log.flush();
    }
  }
}
