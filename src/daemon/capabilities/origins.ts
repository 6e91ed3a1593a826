/** Local addresses of remote agents. */
import { Origins } from '../../capabilities/origins/origins.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import { OriginStore } from '../../foundation/store/origins.ts';
import { originServers } from '../../surfaces/origin/origin-server.ts';
import type { Foundation } from '../foundation.ts';
import type { Agents } from './agents.ts';
import type { buildCalls } from './calls.ts';
import type { buildCards } from './cards.ts';
import type { buildPush } from './push.ts';
import type { buildTunnels } from './tunnels.ts';

export function buildOrigins(
  { life, clock, log: parent, store }: Foundation,
  { onDeleted }: Agents,
  { caller }: Pick<ReturnType<typeof buildCalls>, 'caller'>,
  { tunnels }: Pick<ReturnType<typeof buildTunnels>, 'tunnels'>,
  { cardAdmission, remoteCards }: Pick<ReturnType<typeof buildCards>, 'cardAdmission' | 'remoteCards'>,
  { webhooks, ownPorts }: Pick<ReturnType<typeof buildPush>, 'webhooks' | 'ownPorts'>,
) {
  const log = parent.child('origins');
  const origins = new Origins({
    clock,
    log,
    memory: new OriginStore(store),
    serve: originServers({
      caller,
      clock,
      log,
      cards: cardAdmission,
      signedCard: async (remote, local, signal) => {
        const { kind, card } = await remoteCards.get(remote, local, signal);
        return kind === 'a2a' ? card : null;
      },
      push: webhooks,
      carry: (socket, target, refused) => tunnels.carry(socket, target, refused),
    }),
    probe: async (request) => {
      try {
        await tunnels.probe(request);
      } catch (error) {
        // The agent is reachable and accepts calls, which is enough for most programs.
        if (!(error instanceof SvcError) || error.code !== 'calls_only') throw error;
      }
    },
  });
  life.add('acting', origins);
  ownPorts.push(() => origins.list().map(({ url }) => Number(new URL(url).port)));
  onDeleted((aid) => detach(origins.closeAllOf(aid)));
  return { origins };
}
