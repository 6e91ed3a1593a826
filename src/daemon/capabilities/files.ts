/** Files of agents: objects, and file offers. */
import { HttpCaller } from '../../capabilities/calls/http-caller.ts';
import { FileOffers, OfferReceiver } from '../../capabilities/file-offers/file-offers.ts';
import { OfferAccess } from '../../capabilities/file-offers/offer-access.ts';
import { Holders, ObjectGetter, offeredKey } from '../../capabilities/objects/object-getter.ts';
import { ObjectServer, type ObjectTarget } from '../../capabilities/objects/object-server.ts';
import { ObjectService } from '../../capabilities/objects/object-service.ts';
import { OfferedFiles } from '../../capabilities/objects/offered-files.ts';
import { offeredHashes, offeredResource, RemoteObjects } from '../../capabilities/objects/remote-objects.ts';
import { detach } from '../../foundation/detached.ts';
import type { NetworkState } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import { FileOfferStore } from '../../foundation/store/file-offers.ts';
import { ObjectRepository } from '../../foundation/store/objects.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { AccessRequest } from '../../network/links/types.ts';
import { FilesRootSetting, resolveFilesRoot } from '../files-root.ts';
import type { Foundation } from '../foundation.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { Messages, Shared } from './messages.ts';

// Objects: files that local agents offer, and files that they fetch.

export function buildObjects(
  { life, clock, log, parts, store, config, configuration, dataDir, keyDirectory }: Foundation,
  { onDeleted }: Agents,
  { permissions, callers, keepChecked }: Access,
  { offered, offerStore, authorizeObject }: Offered,
  links: AgentLinks,
) {
  const repository = new ObjectRepository(store);
  const filesRoot = resolveFilesRoot(config.files_root, dataDir.path);
  const objects = new ObjectService({ filesRoot }, repository, clock, log);
  life.add('answering', objects);
  const own = { dataDir: dataDir.path, keys: keyDirectory };
  const filesRootSetting = new FilesRootSetting({ configuration, objects, own, log });
  life.defer(filesRootSetting.stop);
  onDeleted((aid) => objects.forgetAgent(aid));
  const offeredFiles = new OfferedFiles(objects, (aid, id) => offerStore.get(aid, id)?.objectId ?? null);
  const objectServer = new ObjectServer({
    links,
    objects,
    offered: offeredFiles,
    ...parts,
    callers,
    authorize: authorizeObject,
    isNamed: permissions.isNamed,
    reading: (request, id) => offered.reading(request, id),
  });
  life.add('answering', objectServer);
  keepChecked(objectServer);
  const caller = new HttpCaller(links, clock, { purpose: 'object' });
  life.defer(() => caller.stop());
  const remoteObjects = new RemoteObjects({ caller });
  const holders = new Holders(repository, remoteObjects, objects, clock);
  const objectGetter = new ObjectGetter(objects, holders, remoteObjects, clock);
  return { objects, offeredFiles, filesRootSetting, objectServer, remoteObjects, holders, objectGetter };
}

// File offers between agents: sealed notes that name objects.

export type Offered = ReturnType<typeof buildOffered>;

/** Access to offered objects, which access lists do not cover. */
export function buildOffered({ clock, store }: Foundation, { access }: Access) {
  const offerStore = new FileOfferStore(store);
  const offered = new OfferAccess(offerStore, clock, (called, caller) => access.isDenied(called, caller));
  return {
    offerStore,
    offered,
    /** Like `AccessControl.authorize`. In addition, the recipient of an offer, and no other agent, may read its file. */
    authorizeObject: async (request: AccessRequest, target: ObjectTarget | null): Promise<void> => {
      const isOffered = target?.kind !== 'object' && offered.mayRead(request, target?.id ?? null);
      if (isOffered && !access.isClosedTo(request)) return;
      if (target?.kind === 'offer') throw new SvcError('access_denied');
      await access.authorize(request);
    },
  };
}

interface Parts extends Pick<Shared, 'events'>, Messages {
  readonly access: Access;
  readonly offered: Offered;
  readonly objects: ObjectService;
  readonly offeredFiles: OfferedFiles;
  readonly objectServer: ObjectServer;
  readonly objectGetter: ObjectGetter;
  readonly remoteObjects: RemoteObjects;
  readonly network: NetworkState;
  readonly addressBook: { get(): { readonly aliases: Readonly<Record<string, string>> } };
}

export function buildFileOffers({ life, parts }: Foundation, { registry }: Agents, others: Parts) {
  const { access, offered, notes, chat, events, objects, offeredFiles, objectServer, addressBook } = others;
  const { objectGetter, remoteObjects, network } = others;
  const fileOffers = new FileOffers({
    store: offered.offerStore,
    offered: offered.offered,
    notes,
    objects,
    files: offeredFiles,
    events,
    network,
    ...parts,
    isHere: (aid) => registry.identity(aid) !== null,
    isBlocked: (aid: Aid, peer: Aid) => access.access.isDenied(aid, peer) || chat.isBlocked(aid, peer),
    isKnown: (aid: Aid, peer: Aid) => access.access.isNamed(aid, peer) || peer in addressBook.get().aliases,
    recheck: (aid) => detach(objectServer.recheck(aid)),
    newId,
  });
  life.add('acting', fileOffers);
  life.defer(objects.onStored((aid, objectId) => offered.offerStore.keepObject(aid, objectId)));
  const offerTaker = new OfferReceiver(fileOffers, {
    get: (request) => objectGetter.getOffered(request),
    progress: (aid, id) => objectGetter.progress(offeredKey(aid, id)),
    read: ({ id, ...request }) =>
      remoteObjects.read({ ...request, resource: offeredResource(id, 'file'), method: 'GET' }),
    hashes: (file) => offeredHashes(remoteObjects, file),
  });
  return { fileOffers, offerTaker };
}
