/** Calls over HTTP: those that are served here, and those that go out. */
import { CallServer } from '../../capabilities/calls/call-server.ts';
import { HttpCaller } from '../../capabilities/calls/http-caller.ts';
import type { AgentLinks } from '../../network/links/links.ts';
import type { Foundation } from '../foundation.ts';
import type { Life } from '../life.ts';
import type { Access } from './access.ts';
import type { Agents } from './agents.ts';

export function buildCalls(
  { clock, log }: Foundation,
  { boundService, onDeleted, serviceSockets }: Agents,
  { access, keepChecked }: Access,
  links: AgentLinks,
  life: Life,
) {
  const callServer = new CallServer({
    links,
    clock,
    log,
    watch: (socket) => serviceSockets.watch(socket),
    authorize: (request) => access.authorize(request),
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...service, scheme: service.scheme === 'https' ? 'https' : 'http' };
    },
  });
  life.add('answering', callServer);
  keepChecked(callServer);
  onDeleted((aid) => callServer.drop(aid));
  const caller = new HttpCaller({ links, clock });
  const adminCaller = new HttpCaller({ links, clock, purpose: 'admin' });
  life.defer(() => caller.stop());
  life.defer(() => adminCaller.stop());
  return { callServer, caller, adminCaller };
}
