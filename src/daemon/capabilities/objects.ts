/** Objects: files that local agents offer, and files that they fetch. */
import { HttpCaller } from '../../capabilities/calls/http-caller.ts';
import { Holders, ObjectGetter } from '../../capabilities/objects/object-getter.ts';
import { ObjectServer } from '../../capabilities/objects/object-server.ts';
import { ObjectService } from '../../capabilities/objects/object-service.ts';
import { RemoteObjects } from '../../capabilities/objects/remote-objects.ts';
import { ObjectRepository } from '../../foundation/store/objects.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import { FilesRootSetting, resolveFilesRoot } from '../files-root.ts';
import type { Foundation } from '../foundation.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';
import type { Offered } from './file-offers.ts';

export function buildObjects(
  { life, clock, log, store, config, configuration, dataDir, keyDirectory }: Foundation,
  { onDeleted }: Agents,
  { access, callers, keepChecked }: Access,
  { offered, authorizeObject }: Offered,
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
  const objectServer = new ObjectServer({
    links,
    objects,
    clock,
    log,
    callers,
    authorize: authorizeObject,
    isNamed: ({ caller, called }) => access.isNamed(called, caller),
    reading: (request, objectId) => offered.reading(request, objectId),
  });
  life.add('answering', objectServer);
  keepChecked(objectServer);
  const caller = new HttpCaller(links, clock, { purpose: 'object' });
  life.defer(() => caller.stop());
  const remoteObjects = new RemoteObjects({ caller });
  const holders = new Holders(repository, remoteObjects, objects, clock);
  const objectGetter = new ObjectGetter(objects, holders, remoteObjects, clock);
  return { objects, filesRootSetting, objectServer, remoteObjects, holders, objectGetter };
}
