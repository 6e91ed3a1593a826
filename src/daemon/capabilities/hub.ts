/** The MCP hub. */
import { agentFetch } from '../../capabilities/calls/agent-fetch.ts';
import type { Catalog } from '../../capabilities/directory/catalog.ts';
import { A2aSkills } from '../../capabilities/hub/a2a-skills.ts';
import { Hub } from '../../capabilities/hub/hub.ts';
import { McpServers, type Pair } from '../../capabilities/hub/mcp-servers.ts';
import { MAX_HUB_ANSWER_BYTES, MAX_HUB_ANSWER_VALUES } from '../../foundation/domain/hub.ts';
import { SvcError } from '../../foundation/errors.ts';
import { newId } from '../../foundation/ids.ts';
import { HubStore } from '../../foundation/store/hub.ts';
import type { Capabilities } from '../capabilities.ts';
import type { Foundation } from '../foundation.ts';

/** @param catalog finds agents on the network */
export function buildHub(
  { life, clock, log, store }: Foundation,
  { caller, foundCaller, remoteCards, addressBook, nodeEvents }: Capabilities,
  catalog: Catalog,
): Hub {
  const limits = { maxBytes: MAX_HUB_ANSWER_BYTES, maxValues: MAX_HUB_ANSWER_VALUES };
  const fetch = ({ local, remote }: Pair) =>
    agentFetch(hub.isChosen({ local, remote }) ? caller : foundCaller, local, remote, limits);
  const hub: Hub = new Hub({
    clock,
    log: log.child('hub'),
    store: new HubStore(store),
    mcp: new McpServers({ clock, fetch, onChanged: (pair) => hub.changed(pair) }),
    a2a: new A2aSkills({
      clock,
      fetch,
      newId,
      card: async ({ local, remote }, signal) => {
        try {
          const { kind, card } = await remoteCards.get(remote, local, signal);
          return kind === 'a2a' ? card : null;
        } catch (error) {
          if (error instanceof SvcError && error.code === 'not_found') return null;
          throw error;
        }
      },
    }),
    labels: () => addressBook.get().aliases,
    findAgents: (text, limit, signal) => catalog.findAgents(text, limit, signal),
    onHeld: ({ local, remote }, held) => nodeEvents.emit('hub.held', { remote_aid: remote, ...held }, local),
  });
  life.add('acting', hub);
  return hub;
}
