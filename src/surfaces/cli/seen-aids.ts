/** AIDs that the node has seen, for prefix matching. */
import type { SvcClient } from './client.ts';
import { aidsIn } from './names.ts';

/** Largest number of agents, and of groups per agent, that are searched. */
const MAX_LOOKED_UP = 20;

/** AIDs in a response. Empty if the request fails. */
async function heard(answer: Promise<unknown>): Promise<readonly string[]> {
  return answer.then(
    (given) => [...aidsIn(given)],
    () => [],
  );
}

async function membersOf(client: SvcClient, aid: string): Promise<readonly string[]> {
  const { groups } = await client.groupList({ aid });
  const some = groups.slice(0, MAX_LOOKED_UP);
  return (await Promise.all(some.map(({ group_id }) => heard(client.groupHead({ aid, group_id }))))).flat();
}

async function knownTo(client: SvcClient, aid: string): Promise<readonly string[]> {
  const parts = [
    heard(client.chatContacts({ aid })),
    heard(client.mailboxList({ aid })),
    heard(client.groupInvitations({ aid })),
    heard(client.aclGet({ aid })),
    membersOf(client, aid).catch(() => []),
  ];
  return (await Promise.all(parts)).flat();
}

/**
 * Local agents, peers of tunnels and links, friends, senders of notes, members of groups, entries of access lists,
 * callers that request access.
 */
export async function seenAids(client: SvcClient, own: readonly { readonly aid: string }[]): Promise<Set<string>> {
  const parts = [
    heard(client.tunnelList()),
    heard(client.nodeLinks()),
    heard(client.remoteAdminGet()),
    heard(client.accessRequests()),
    ...own.slice(0, MAX_LOOKED_UP).map(({ aid }) => knownTo(client, aid)),
  ];
  return new Set([...own.map(({ aid }) => aid), ...(await Promise.all(parts)).flat()]);
}
