/** Cards of local agents, and validation of other agents' cards. */
import { OwnCards } from '../../capabilities/cards/own-cards.ts';
import { CardAdmission, RemoteCards } from '../../capabilities/cards/remote-cards.ts';
import { readProfile } from '../../capabilities/directory/cards.ts';
import { objectResource, verifiedBytes } from '../../capabilities/objects/remote-objects.ts';
import { badCard, MAX_CARD_BYTES } from '../../foundation/cards/card.ts';
import { detach } from '../../foundation/detached.ts';
import { isSha256 } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { compareFreshness } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import { parseServiceAddress } from '../../foundation/service-address.ts';
import { CardStore } from '../../foundation/store/cards.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';
import type { DirectoryParts } from './directory.ts';
import type { buildObjects } from './files.ts';

/** Host and port of a bound service; null if the text is not valid. */
function addressOf(service: string) {
  try {
    return service === '' ? null : parseServiceAddress(service);
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}

export function buildCards(
  { life, clock, log, store, seen, delegations }: Foundation,
  { resolver }: Network,
  { registry }: Agents,
  { directory }: DirectoryParts,
  { objects, remoteObjects }: ReturnType<typeof buildObjects>,
) {
  const cardStore = new CardStore(store);
  const cardAdmission = new CardAdmission({
    clock,
    store: cardStore,
    verifyDelegation: (delegation, now) => delegations.verify(delegation, now),
    newestDelegation: (aid) => seen.newest(aid),
    serviceOf: async (aid, signal) => {
      const own = registry.service(aid);
      if (own !== '') return addressOf(own);
      try {
        const { payload } = await resolver.resolve(aid, signal === undefined ? {} : { signal });
        return addressOf(payload.service ?? '');
      } catch (error) {
        if (error instanceof SvcError) return null;
        throw error;
      }
    },
  });
  const ownCards = new OwnCards({
    clock,
    log,
    store: cardStore,
    identity: (aid) => registry.identity(aid),
    serviceOf: (aid) => addressOf(registry.service(aid)),
    objects,
    setProfileCard: (aid, objectId) => directory.nameCard(aid, objectId),
  });
  life.add('acting', ownCards);
  registry.onChange(({ aid, kind }) => {
    if (kind === 'rotated') detach(ownCards.resign(aid));
  });
  const remoteCards = new RemoteCards({
    clock,
    store: cardStore,
    admission: cardAdmission,
    own: (aid) => ownCards.find(aid),
    profileCard: async (aid, signal) => {
      const records = await resolver.records(aid, RECORD.profile, signal);
      const [newest] = records.toSorted((a, b) => compareFreshness(b, a));
      if (newest === undefined) return null;
      seen.note(aid, newest.delegation.issuedAt);
      const hash = readProfile(newest.payload)?.cardHash ?? '';
      return { objectId: isSha256(hash) ? hash : null };
    },
    read: async ({ local, holder, objectId, signal }) => {
      const resource = objectResource(objectId);
      const request = { local, holder, resource, method: 'GET', headers: {}, signal } as const;
      const { body, size } = await remoteObjects.read(request);
      try {
        if (size > MAX_CARD_BYTES) throw badCard('too_large', `it is larger than ${MAX_CARD_BYTES} bytes`);
        const pieces: Uint8Array[] = [];
        for await (const piece of verifiedBytes(body, objectId)) pieces.push(Uint8Array.from(piece));
        return Buffer.concat(pieces);
      } finally {
        body.destroy();
      }
    },
  });
  return { cardAdmission, ownCards, remoteCards };
}
