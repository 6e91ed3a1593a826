/** Hooks: programs that start when something arrives. */
import { delimiter } from 'node:path';
import type { AccessRequests } from '../../capabilities/access/requests.ts';
import type { CallServer } from '../../capabilities/calls/call-server.ts';
import type { EventLog } from '../../capabilities/events/event-log.ts';
import type { EventWaits } from '../../capabilities/events/event-waits.ts';
import type { FileOffers } from '../../capabilities/file-offers/file-offers.ts';
import type { Groups } from '../../capabilities/groups/groups.ts';
import { Channel } from '../../capabilities/hooks/channel.ts';
import { Hooks } from '../../capabilities/hooks/hooks.ts';
import { OnDemandServices } from '../../capabilities/hooks/on-demand.ts';
import { formatAddress } from '../../foundation/address.ts';
import { HOOKS_DIRECTORY, ON_DEMAND_DIRECTORY } from '../../foundation/data-dir/paths.ts';
import { detach } from '../../foundation/detached.ts';
import { programFolders } from '../../foundation/package-file.ts';
import { HookStore } from '../../foundation/store/hooks.ts';
import { OnDemandStore } from '../../foundation/store/on-demand.ts';
import { channelItems, hookItems } from '../../operations/handlers/hook-items.ts';
import type { ApiReference } from '../api.ts';
import type { Foundation } from '../foundation.ts';
import { connectable } from '../status.ts';
import type { Agents } from './agents.ts';
import type { Messages } from './messages.ts';

/** The variables of the daemon that programs get, except PATH. All others may be secrets. */
const PASSED_ON = [
  ...['HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR'],
  ...['PATHEXT', 'COMSPEC', 'SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'TEMP', 'TMP', 'USERPROFILE', 'USERNAME'],
  ...['APPDATA', 'LOCALAPPDATA', 'PROGRAMDATA', 'PROGRAMFILES', 'PROGRAMFILES(X86)'],
];

/** The PATH of programs if the daemon has none. An empty PATH means the working directory. */
const DEFAULT_PATH = process.platform === 'win32' ? 'C:\\Windows\\System32' : '/usr/local/bin:/usr/bin:/bin';

/** The daemon's PATH with the folders of `svc` at the end, so that the user's own programs come first. */
function pathWithSvc({ PATH }: NodeJS.ProcessEnv): string {
  const path = PATH === undefined || PATH === '' ? DEFAULT_PATH : PATH;
  const folders = path.split(delimiter);
  return [...folders, ...programFolders().filter((one) => !folders.includes(one))].join(delimiter);
}

interface Parts extends Messages {
  readonly eventLog: EventLog;
  readonly eventWaits: EventWaits;
  readonly groups: Groups;
  readonly fileOffers: FileOffers;
  readonly callServer: CallServer;
  readonly accessRequests: AccessRequests;
}

export function buildHooks(
  { life, clock, log, store, meta, seen, dataDir, config, configuration }: Foundation,
  { onDeleted, registry, reportFailures }: Agents,
  api: ApiReference,
  { notes, chat, groups, fileOffers: offers, eventLog, eventWaits, callServer, accessRequests, isKnown }: Parts,
): { readonly hooks: Hooks; readonly onDemand: OnDemandServices; readonly channel: Channel } {
  const passed = PASSED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const path = pathWithSvc(process.env);
  const environment = (): Record<string, string> => ({
    ...Object.fromEntries(passed),
    PATH: path,
    SVCD_DATA_DIR: dataDir.path,
    ...(api.address === null ? {} : { SVC_API: `http://${connectable(formatAddress(api.address))}` }),
    // The program could read the token in the configuration file, too.
    ...(config.require_local_token ? { SVC_TOKEN: configuration.current.api_token } : {}),
  });
  const sources = { notes, chat, groups, offers, requests: accessRequests, seen, clock };
  const hooks = new Hooks({
    store: new HookStore(store),
    items: hookItems(sources),
    events: eventLog,
    clock,
    log,
    directory: dataDir.file(HOOKS_DIRECTORY),
    environment,
    isKnown,
  });
  life.defer(eventLog.onEmitted((aid, type, data) => hooks.emitted(aid, type, data)));
  callServer.answerBy((request) => hooks.programFor(request));
  const onDemand = new OnDemandServices({
    store: new OnDemandStore(store),
    clock,
    log,
    directory: dataDir.file(ON_DEMAND_DIRECTORY),
    environment,
    onChange: (aid) => detach(registry.checkService(aid).catch(() => null)),
  });
  reportFailures((address) => onDemand.failureAt(address));
  life.add('answering', onDemand);
  onDeleted((aid) => {
    hooks.agentDeleted();
    detach(onDemand.forget(aid));
  });
  const channel = new Channel({
    items: channelItems(sources),
    events: eventLog,
    waits: eventWaits,
    isHooked: (arrival) => hooks.isHandling(arrival),
    storage: meta,
    commit: (work) => store.commit(work, 'now'),
    clock,
    log,
    isKnown,
  });
  return { hooks, onDemand, channel };
}
