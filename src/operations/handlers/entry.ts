/** Handlers of the operations on this node as an entry. */
import type { Entry } from '../../capabilities/entry/entry.ts';
import type { EntryNames } from '../../capabilities/entry/entry-names.ts';
import type { Joining } from '../../capabilities/joining/joining.ts';
import { HTTPS_PORT } from '../../foundation/address.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { PortTrouble } from '../../foundation/domain/tunnels.ts';
import { describePortTrouble } from '../../foundation/sockets.ts';
import type { entryOperations } from '../entry.ts';
import type { Handlers } from '../operation.ts';
import { invitationView } from './joining.ts';

interface EntryHandlerDependencies {
  readonly entry: Pick<Entry, 'usage' | 'connectionsOf'>;
  readonly entryNames: EntryNames;
  readonly joining: Pick<Joining, 'invite'>;
  /** The listeners of the TCP port, and those that could not be opened. */
  readonly lending: {
    readonly addresses: readonly { readonly port: number }[];
    readonly failed: readonly { readonly port: number; readonly trouble: PortTrouble }[];
  };
}

const REMEDIES: Readonly<Record<PortTrouble, string>> = {
  in_use: 'Stop that program, or let it pass TLS on (entry_proxies).',
  not_permitted: 'Run "sudo svcd service install" again, which permits it.',
  unusable: 'The log has the error. Correct tls_listen.',
};

export function entryHandlers(deps: EntryHandlerDependencies): Handlers<typeof entryOperations> {
  const { entry, entryNames, joining, lending } = deps;
  const ok = { ok: true } as const;
  return {
    entryShow: () => {
      const failed = entryNames.isOn ? lending.failed.find(({ port }) => port === HTTPS_PORT) : undefined;
      const problem = failed && {
        code: failed.trouble === 'in_use' ? 'address_in_use' : 'network_unavailable',
        message: `TCP port ${HTTPS_PORT} ${describePortTrouble(failed.trouble)}. ${REMEDIES[failed.trouble]}`,
      };
      const { connections, accepted, refused, failed: unreached, bytes } = entry.usage;
      return {
        domains: [...entryNames.domains],
        ports: lending.addresses.map(({ port }) => port),
        problem: problem ?? null,
        allowed: entryNames.allowed().map(({ aid, createdAt }) => ({ aid, created_at: isoTime(createdAt) })),
        names: entryNames.names().map(({ name, aid, heldAt, seenAt }) => ({
          ...{ name, aid, held_at: isoTime(heldAt), seen_at: isoTime(seenAt) },
          connections: entry.connectionsOf(name),
        })),
        ...{ connections, accepted, refused, failed: unreached, bytes },
      };
    },
    entryAllow: ({ aid }) => {
      entryNames.allow(aid);
      return ok;
    },
    entryDeny: ({ aid }) => {
      entryNames.deny(aid);
      return ok;
    },
    entryNameRemove: ({ name }) => {
      entryNames.remove(name);
      return ok;
    },
    entryInvite: async () => invitationView(await joining.invite({ token: entryNames.invite() })),
  };
}
