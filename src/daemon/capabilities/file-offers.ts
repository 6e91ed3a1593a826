/** File offers between agents: sealed notes that name objects. */
import { FileOffers, OfferReceiver } from '../../capabilities/file-offers/file-offers.ts';
import { OfferAccess } from '../../capabilities/file-offers/offer-access.ts';
import type { ObjectGetter } from '../../capabilities/objects/object-getter.ts';
import type { ObjectServer } from '../../capabilities/objects/object-server.ts';
import type { ObjectService } from '../../capabilities/objects/object-service.ts';
import type { RemoteObjects } from '../../capabilities/objects/remote-objects.ts';
import { detach } from '../../foundation/detached.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { FileOfferStore } from '../../foundation/store/file-offers.ts';
import type { AccessRequest } from '../../network/links/types.ts';
import type { Foundation } from '../foundation.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { Messages, Shared } from './messages.ts';

export type Offered = ReturnType<typeof buildOffered>;

/** Access to offered objects, which access lists do not cover. */
export function buildOffered({ clock, store }: Foundation, { access }: Access) {
  const offerStore = new FileOfferStore(store);
  const offered = new OfferAccess(offerStore, clock, (called, caller) => access.isDenied(called, caller));
  return {
    offerStore,
    offered,
    /** Like `AccessControl.authorize`. In addition, the recipient of an offer may read the offered object. */
    authorizeObject: async (request: AccessRequest, objectId: string | null): Promise<void> => {
      if (access.isClosedTo(request) || !offered.mayRead(request, objectId)) await access.authorize(request);
    },
  };
}

interface Parts extends Pick<Shared, 'events'>, Messages {
  readonly access: Access;
  readonly offered: Offered;
  readonly objects: ObjectService;
  readonly objectServer: ObjectServer;
  readonly objectGetter: ObjectGetter;
  readonly remoteObjects: RemoteObjects;
  readonly addressBook: { get(): { readonly aliases: Readonly<Record<string, string>> } };
}

export function buildFileOffers({ life, clock, log }: Foundation, { registry }: Agents, parts: Parts) {
  const { access, offered, notes, chat, events, objects, objectServer, objectGetter, remoteObjects, addressBook } =
    parts;
  const fileOffers = new FileOffers({
    store: offered.offerStore,
    offered: offered.offered,
    notes,
    objects,
    events,
    clock,
    log,
    isHere: (aid) => registry.identity(aid) !== null,
    isBlocked: (aid: Aid, peer: Aid) => access.access.isDenied(aid, peer) || chat.isBlocked(aid, peer),
    isKnown: (aid: Aid, peer: Aid) => access.access.isNamed(aid, peer) || peer in addressBook.get().aliases,
    recheck: (aid) => detach(objectServer.recheck(aid)),
    newId,
  });
  life.add('acting', fileOffers);
  life.defer(objects.onStored((aid, objectId) => offered.offerStore.keepObject(aid, objectId)));
  const offerTaker = new OfferReceiver(fileOffers, {
    get: (request) => objectGetter.get(request),
    progress: (objectId) => objectGetter.progress(objectId),
    read: (request) => remoteObjects.read(request),
  });
  return { fileOffers, offerTaker };
}
