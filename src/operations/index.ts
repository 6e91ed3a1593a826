/** The operations table: every declaration by its name. */
import * as access from './access.ts';
import * as addressBook from './address-book.ts';
import * as agents from './agents.ts';
import * as calls from './calls.ts';
import * as chat from './chat.ts';
import * as directory from './directory.ts';
import * as events from './events.ts';
import * as gateway from './gateway.ts';
import * as mail from './mail.ts';
import * as mcp from './mcp.ts';
import * as moving from './moving.ts';
import * as node from './node.ts';
import * as objects from './objects.ts';
import * as pages from './pages.ts';
import * as remoteAdmin from './remote-admin.ts';
import * as rooms from './rooms.ts';
import * as tools from './tools.ts';
import * as tunnels from './tunnels.ts';
import * as update from './update.ts';
import * as wallets from './wallets.ts';

export const declarations = {
  health: node.health,
  status: node.status,
  configGet: node.configGet,
  configPatch: node.configPatch,
  configSchema: node.configSchema,
  updateStatus: update.updateStatus,
  updateApply: update.updateApply,
  debugIdentity: node.debugIdentity,
  debugRouting: node.debugRouting,
  debugStore: node.debugStore,
  debugStats: node.debugStats,
  debugHost: node.debugHost,
  identityGenerate: agents.identityGenerate,
  agentRegister: agents.agentRegister,
  agentsList: agents.agentsList,
  agentGet: agents.agentGet,
  agentExport: agents.agentExport,
  agentBundle: moving.agentBundle,
  agentImport: moving.agentImport,
  agentPatch: agents.agentPatch,
  agentDelete: agents.agentDelete,
  agentProbe: agents.agentProbe,
  agentHeartbeat: agents.agentHeartbeat,
  walletGenerate: wallets.walletGenerate,
  ethereumMessage: wallets.ethereumMessage,
  ethereumRegister: wallets.ethereumRegister,
  ethereumProof: wallets.ethereumProof,
  paralismProof: wallets.paralismProof,
  agentPublish: directory.agentPublish,
  agentPublishRecord: directory.agentPublishRecord,
  profileSet: directory.profileSet,
  profileDelete: directory.profileDelete,
  serviceRegister: directory.serviceRegister,
  serviceUnregister: directory.serviceUnregister,
  discover: directory.discover,
  resolve: directory.resolve,
  resolveRecords: directory.resolveRecords,
  fetch: calls.fetch,
  aclGet: access.aclGet,
  aclPatch: access.aclPatch,
  aclAllow: access.aclAllow,
  aclDeny: access.aclDeny,
  aclAllowDelete: access.aclAllowDelete,
  aclDenyDelete: access.aclDenyDelete,
  connect: tunnels.connect,
  tunnelOpen: tunnels.tunnelOpen,
  tunnelList: tunnels.tunnelList,
  tunnelGet: tunnels.tunnelGet,
  tunnelClose: tunnels.tunnelClose,
  tunnelReset: tunnels.tunnelReset,
  sessionGet: tunnels.sessionGet,
  remoteAdminGet: remoteAdmin.remoteAdminGet,
  remoteAdminPatch: remoteAdmin.remoteAdminPatch,
  remoteAdminAllow: remoteAdmin.remoteAdminAllow,
  remoteAdminDeny: remoteAdmin.remoteAdminDeny,
  remoteAdminAllowDelete: remoteAdmin.remoteAdminAllowDelete,
  remoteAdminDenyDelete: remoteAdmin.remoteAdminDenyDelete,
  remoteAdminAudit: remoteAdmin.remoteAdminAudit,
  addressBookGet: addressBook.addressBookGet,
  addressBookPut: addressBook.addressBookPut,
  eventsPoll: events.eventsPoll,
  mailboxSend: mail.mailboxSend,
  mailboxList: mail.mailboxList,
  mailboxPoll: mail.mailboxPoll,
  chatRequest: chat.chatRequest,
  chatAccept: chat.chatAccept,
  chatRefuse: chat.chatRefuse,
  chatRemove: chat.chatRemove,
  chatBlock: chat.chatBlock,
  chatSend: chat.chatSend,
  chatMarkRead: chat.chatMarkRead,
  chatContacts: chat.chatContacts,
  chatRead: chat.chatRead,
  groupList: rooms.groupList,
  groupHead: rooms.groupHead,
  groupEntries: rooms.groupEntries,
  groupLeave: rooms.groupLeave,
  groupCreate: rooms.groupCreate,
  groupInvite: rooms.groupInvite,
  groupJoin: rooms.groupJoin,
  groupGetLink: rooms.groupGetLink,
  groupMembers: rooms.groupMembers,
  groupAppend: rooms.groupAppend,
  groupRead: rooms.groupRead,
  groupMarkRead: rooms.groupMarkRead,
  groupRetract: rooms.groupRetract,
  groupSync: rooms.groupSync,
  toolCall: tools.toolCall,
  objectList: objects.objectList,
  objectDelete: objects.objectDelete,
  objectPut: objects.objectPut,
  objectLocate: objects.objectLocate,
  objectGet: objects.objectGet,
} as const;

/** Every route that is served by hand. */
export const streams = {
  openApi: pages.openApi,
  docs: pages.docs,
  docsFile: pages.docsFile,
  metrics: pages.metrics,
  gatewayRoot: gateway.gatewayRoot,
  gateway: gateway.gateway,
  via: remoteAdmin.via,
  agentEvents: events.agentEvents,
  nodeEvents: events.nodeEvents,
  objectUpload: objects.objectUpload,
  objectRead: objects.objectRead,
  mcp: mcp.mcp,
  mcpBare: mcp.mcpBare,
} as const;
