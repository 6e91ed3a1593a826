/** What the directory needs from others. */
import type { Clock } from '../../foundation/clock.ts';
import type { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NewAids } from '../../foundation/identity/new-identities.ts';
import type { Log } from '../../foundation/log.ts';
import type { EndpointsPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { PublicationStore } from '../../foundation/store/publications.ts';
import type { LocalIdentity } from '../../network/links/types.ts';
import type { NodeAddresses } from '../../network/reachability/own-addresses.ts';
import type { RecordNetwork } from '../../network/records/types.ts';

/** The part of the record network that the directory uses. */
export type Records = Pick<
  RecordNetwork,
  'put' | 'get' | 'list' | 'near' | 'holders' | 'reachability' | 'onReachability'
>;

/** Resolves agents for the layers above: see `network/resolver.ts`. */
export interface AgentResolver {
  /** The newest endpoint record. @throws SvcError `resolve_failed` and errors of the network */
  resolve(
    aid: Aid,
    options?: { readonly fresh?: boolean; readonly signal?: AbortSignal },
  ): Promise<{ readonly record: SignedRecord; readonly payload: EndpointsPayload }>;
  /** The records under an AID, of one type or of all. @throws SvcError as `resolve` */
  records(aid: Aid, type: RecordType | null, signal?: AbortSignal): Promise<readonly SignedRecord[]>;
}

export interface DirectoryOptions {
  readonly nodeAid: Aid;
  /** The Ed25519 key of this node: endpoint records say it. */
  readonly nodeKey: Uint8Array;
}

export interface DirectoryDependencies {
  readonly network: Records;
  /** Why a publication that began then was taken by no node. See `NetworkTrouble.why`. */
  why?(since: number): Promise<SvcError | null>;
  readonly publications: PublicationStore;
  /** AIDs of which the network holds nothing yet. */
  readonly newAids: NewAids;
  readonly clock: Clock;
  readonly log: Log;
  /** The identity of an agent here or of the node; null where it is not here. */
  identity(aid: Aid): LocalIdentity | null;
  /** True while the records of an agent are worth renewing; never asked about the node. */
  isAlive(aid: Aid): Promise<boolean>;
  /** The bound service of an agent, which endpoint records say and whose coming back makes it alive; empty: none. */
  serviceOf(aid: Aid): string;
  /** True where an agent is not to be published until somebody asks for it. */
  isHeld(aid: Aid): boolean;
  addresses(): NodeAddresses;
  /**
   * Calls back when `addresses` gives something else: with true where others reach us by what is new, or no more by what
   * they know. Returns how to stop.
   */
  onAddresses(handler: (isUrgent: boolean) => void): () => void;
  /** The setting `auto_publish`: whether registering is enough to be published. */
  autoPublish(): boolean;
  /** Told of a delegation on the network that is newer than the one here. Unix seconds. */
  noteDelegation?(aid: Aid, issuedAt: number): void;
  /** Told of each record of ours that at least one node keeps. */
  onPublished(record: SignedRecord): void;
  /** A number from 0 to below 1: spreads renewals. */
  random(): number;
}
