/** Handlers of the card operations. */
import type { AgentRegistry } from '../../capabilities/agents/registry.ts';
import type { OwnCard, OwnCards } from '../../capabilities/cards/own-cards.ts';
import type { FoundCard, RemoteCards } from '../../capabilities/cards/remote-cards.ts';
import { formatAddress } from '../../foundation/address.ts';
import type { SkippedInterface } from '../../foundation/cards/addresses.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { cardOperations } from '../cards.ts';
import type { Handlers } from '../operation.ts';
import type { ActingAgent } from './local-agents.ts';

export interface CardHandlerDependencies extends ActingAgent {
  readonly agents: AgentRegistry;
  readonly ownCards: OwnCards;
  readonly remoteCards: RemoteCards;
}

function view(aid: Aid, { kind, card, objectId, signedAt }: OwnCard | FoundCard) {
  return { aid, kind, card, object_id: objectId, signed_at: isoTime(signedAt * 1000) };
}

function omittedView({ binding, host, port, servicePort }: SkippedInterface) {
  return { protocol_binding: binding, address: formatAddress({ host, port }), service_port: servicePort };
}

export function cardHandlers(deps: CardHandlerDependencies): Handlers<typeof cardOperations> {
  const { agents, ownCards, remoteCards, localAid } = deps;
  const local = (aid: Aid): Aid => agents.get(aid).aid;
  return {
    cardSet: async ({ aid, card }) => {
      const { seq, replicas, left, ...own } = await ownCards.set(local(aid), card);
      return { ...view(aid, own), seq, replicas, left_out: left.map(omittedView) };
    },
    cardGet: ({ aid }) => view(aid, ownCards.get(local(aid))),
    cardDelete: async ({ aid }) => {
      await ownCards.delete(local(aid));
      return { ok: true };
    },
    card: async ({ aid, local_aid }, { signal }) => {
      const found = await remoteCards.get(aid, localAid(local_aid), signal);
      const { expiresAt, isCurrent } = found;
      const end = expiresAt === 0 ? null : isoTime(expiresAt * 1000);
      return { ...view(aid, found), expires_at: end, is_current: isCurrent };
    },
  };
}
