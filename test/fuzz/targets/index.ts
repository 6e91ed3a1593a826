/** Every fuzz target. */
import type { FuzzTarget } from '../engine/target.ts';
import { accessTargets } from './access.ts';
import { apiTargets } from './api.ts';
import { archiveTargets } from './archives.ts';
import { callTargets } from './calls.ts';
import { cardTargets } from './cards.ts';
import { basicTargets } from './cbor.ts';
import { chatTargets } from './chat.ts';
import { chatLinkTargets } from './chat-links.ts';
import { datagramTargets } from './datagrams.ts';
import { dhtTargets } from './dht.ts';
import { documentTargets } from './documents.ts';
import { entryTargets } from './entry.ts';
import { eventTargets } from './events.ts';
import { fileOfferTargets } from './file-offers.ts';
import { groupLinkTargets } from './group-links.ts';
import { groupTargets } from './groups.ts';
import { hubTargets } from './hub.ts';
import { identityTargets } from './identities.ts';
import { laneTargets } from './lanes.ts';
import { linkStreamTargets } from './link-streams.ts';
import { linkTargets } from './links.ts';
import { mcpTargets } from './mcp.ts';
import { noteTargets } from './notes.ts';
import { objectTargets } from './objects.ts';
import { portMappingTargets } from './port-mapping.ts';
import { pushTargets } from './push.ts';
import { recordTargets } from './records.ts';
import { signalTargets } from './signals.ts';
import { textTargets } from './texts.ts';
import { tlsTargets } from './tls.ts';
import { traceTargets } from './traces.ts';
import { tunnelLinkTargets } from './tunnel-links.ts';
import { tunnelTargets } from './tunnels.ts';
import { turnTargets } from './turn.ts';
import { turnRendezvousTargets } from './turn-rendezvous.ts';
import { updateTargets } from './updates.ts';

export const TARGETS: readonly FuzzTarget[] = [
  ...basicTargets,
  ...identityTargets,
  ...pushTargets,
  ...accessTargets,
  ...traceTargets,
  ...recordTargets,
  ...dhtTargets,
  ...linkTargets,
  ...chatTargets,
  ...chatLinkTargets,
  ...groupTargets,
  ...groupLinkTargets,
  ...noteTargets,
  ...fileOfferTargets,
  ...tunnelTargets,
  ...textTargets,
  ...apiTargets,
  ...callTargets,
  ...objectTargets,
  ...datagramTargets,
  ...archiveTargets,
  ...linkStreamTargets,
  ...laneTargets,
  ...updateTargets,
  ...documentTargets,
  ...eventTargets,
  ...tunnelLinkTargets,
  ...signalTargets,
  ...portMappingTargets,
  ...turnTargets,
  ...turnRendezvousTargets,
  ...cardTargets,
  ...hubTargets,
  ...mcpTargets,
  ...tlsTargets,
  ...entryTargets,
];
