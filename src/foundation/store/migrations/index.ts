/** The schema of the node's database, in order. */
import { agentsMigration } from './001-agents.ts';
import { directoryMigration } from './002-directory.ts';
import { accessMigration } from './003-access.ts';
import { metaMigration } from './004-meta.ts';
import { tunnelsMigration } from './005-tunnels.ts';
import { auditMigration } from './006-audit.ts';
import { notesMigration } from './007-notes.ts';
import { eventsMigration } from './008-events.ts';
import { delegationsMigration } from './009-delegations.ts';
import { objectsMigration } from './010-objects.ts';
import { chatMigration } from './011-chat.ts';
import { roomsMigration } from './012-rooms.ts';
import { roomCountersMigration } from './013-room-counters.ts';
import { retiredKeysMigration } from './014-retired-keys.ts';
import { retiredObjectsMigration } from './015-retired-objects.ts';
import { accessOfAgentsMigration } from './016-access-of-agents.ts';
import { heldAgentsMigration } from './017-held-agents.ts';
import { originsMigration } from './018-origins.ts';
import { evidenceMigration } from './019-evidence.ts';
import { cardsMigration } from './020-cards.ts';
import { fileOffersMigration } from './021-file-offers.ts';
import { noteCopiesMigration } from './022-note-copies.ts';
import { saidAddressesMigration } from './023-said-addresses.ts';
import { pushMigration } from './024-push.ts';
import { noteOutboxMigration } from './025-note-outbox.ts';
import { serviceBeforeMigration } from './026-service-before.ts';
import { rowSumsMigration } from './027-row-sums.ts';
import { delegationSourcesMigration } from './028-delegation-sources.ts';
import { notesKnownMigration } from './029-notes-known.ts';
import { eventsOfStrangersMigration } from './030-events-of-strangers.ts';
import { causesOfEventsMigration } from './031-causes-of-events.ts';
import { namedRefusalsMigration } from './032-named-refusals.ts';

export const MIGRATIONS: readonly string[] = [
  agentsMigration,
  directoryMigration,
  accessMigration,
  metaMigration,
  tunnelsMigration,
  auditMigration,
  notesMigration,
  eventsMigration,
  delegationsMigration,
  objectsMigration,
  chatMigration,
  roomsMigration,
  roomCountersMigration,
  retiredKeysMigration,
  retiredObjectsMigration,
  accessOfAgentsMigration,
  heldAgentsMigration,
  originsMigration,
  evidenceMigration,
  cardsMigration,
  fileOffersMigration,
  noteCopiesMigration,
  saidAddressesMigration,
  pushMigration,
  noteOutboxMigration,
  serviceBeforeMigration,
  rowSumsMigration,
  delegationSourcesMigration,
  notesKnownMigration,
  eventsOfStrangersMigration,
  causesOfEventsMigration,
  namedRefusalsMigration,
];
