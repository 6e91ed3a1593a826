/** The operations table: every declaration by its name. */
import { accessOperations, accessRequestOperations } from './access.ts';
import { addressBookOperations } from './address-book.ts';
import { agentOperations } from './agents.ts';
import { callOperations, evidenceOperations } from './calls.ts';
import { cardOperations } from './cards.ts';
import { chatOperations } from './chat.ts';
import { catalogOperations, directoryOperations } from './directory.ts';
import { doctorOperations } from './doctor.ts';
import { entryOperations } from './entry.ts';
import { eventOperations, eventStreams, nodeEventOperations } from './events.ts';
import { exposureOperations } from './exposures.ts';
import { fileOfferOperations, fileOfferStreams } from './file-offers.ts';
import { gatewayStreams } from './gateway.ts';
import { groupOperations } from './groups.ts';
import { hookOperations } from './hooks.ts';
import { hubOperations, hubStreams } from './hub.ts';
import { joiningOperations } from './joining.ts';
import { mailOperations } from './mail.ts';
import { mcpOperations, mcpStreams } from './mcp.ts';
import { movingOperations } from './moving.ts';
import { nodeOperations } from './node.ts';
import { objectOperations, objectStreams } from './objects.ts';
import { originOperations } from './origins.ts';
import { pageStreams } from './pages.ts';
import { panelOperations, panelStreams } from './panel.ts';
import { processOperations, updateOperations } from './process.ts';
import { pushOperations } from './push.ts';
import { reachOperations } from './reach.ts';
import { remoteAdminOperations, remoteAdminStreams } from './remote-admin.ts';
import { toolOperations } from './tools.ts';
import { traceOperations } from './traces.ts';
import { tunnelOperations } from './tunnels.ts';
import { walletOperations } from './wallets.ts';

export const operations = {
  ...nodeOperations,
  ...processOperations,
  ...doctorOperations,
  ...joiningOperations,
  ...reachOperations,
  ...updateOperations,
  ...panelOperations,
  ...agentOperations,
  ...movingOperations,
  ...evidenceOperations,
  ...walletOperations,
  ...directoryOperations,
  ...cardOperations,
  ...catalogOperations,
  ...callOperations,
  ...traceOperations,
  ...accessOperations,
  ...accessRequestOperations,
  ...tunnelOperations,
  ...originOperations,
  ...exposureOperations,
  ...entryOperations,
  ...pushOperations,
  ...remoteAdminOperations,
  ...addressBookOperations,
  ...eventOperations,
  ...nodeEventOperations,
  ...mailOperations,
  ...chatOperations,
  ...groupOperations,
  ...toolOperations,
  ...mcpOperations,
  ...hubOperations,
  ...objectOperations,
  ...fileOfferOperations,
  ...hookOperations,
};

/** Streams, without the pages of the REST surface. */
export const servedStreams = {
  ...panelStreams,
  ...gatewayStreams,
  ...remoteAdminStreams,
  ...eventStreams,
  ...objectStreams,
  ...fileOfferStreams,
  ...mcpStreams,
  ...hubStreams,
};

/** All streams. */
export const streams = { ...pageStreams, ...servedStreams };
