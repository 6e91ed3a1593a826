/** Handlers of the operations on joining a network. */
import type { Joining } from '../../capabilities/joining/joining.ts';
import { formatAddress, formatContact } from '../../foundation/address.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { joiningOperations } from '../joining.ts';
import type { Handlers } from '../operation.ts';
import { listPage } from '../paging.ts';

interface JoiningHandlerDependencies {
  readonly joining: Pick<Joining, 'invite' | 'join' | 'contacts' | 'forget'>;
}

/** The view of an invitation. */
export function invitationView({ contacts, tlsPorts, ...rest }: Awaited<ReturnType<Joining['invite']>>) {
  return { ...rest, contacts: contacts.map(formatContact), tls_ports: [...tlsPorts] };
}

export function joiningHandlers({ joining }: JoiningHandlerDependencies): Handlers<typeof joiningOperations> {
  return {
    invite: async ({ agent }) =>
      invitationView(await joining.invite(agent === undefined ? {} : { agent: parseAid(agent) })),
    join: async ({ to }) => {
      const { network, by, peers, ready, name, agent } = await joining.join(to);
      return {
        ...{ ok: true, network, by: formatContact(by), dht_peers: peers, network_ready: ready },
        ...(name === undefined ? {} : { name }),
        ...(agent === undefined ? {} : { agent }),
      };
    },
    contacts: (query) => {
      const sortable = joining.contacts().map(({ contact, isJoined, state, hasAnswered, addresses, name }) => {
        const text = formatContact(contact);
        return {
          sortKey: `${isJoined ? 'joined' : 'configured'} ${text}`,
          entry: {
            ...{ contact: text, joined: isJoined, state, has_answered: hasAnswered },
            ...(name === undefined ? {} : { name }),
            addresses: addresses.map(formatAddress),
          },
        };
      });
      const { entries, next_cursor } = listPage(sortable, query);
      return { contacts: entries, next_cursor };
    },
    contactForget: ({ contact }) => {
      joining.forget(contact);
      return { ok: true };
    },
  };
}
