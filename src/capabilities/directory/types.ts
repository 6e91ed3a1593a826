/** The dependencies of the directory. */
import type { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NewAids } from '../../foundation/identity/new-identities.ts';
import type { DelegationMemory, RandomParts } from '../../foundation/node-parts.ts';
import type { EndpointsPayload } from '../../foundation/records/payloads.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';
import type { PublicationStore } from '../../foundation/store/publications.ts';
import type { LocalAgents } from '../../network/links/types.ts';
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
  /** The Ed25519 key of this node: endpoint records contain it. */
  readonly nodeKey: Uint8Array;
}

/** Explains failures. See `OutageDiagnosis`. */
export interface Outages {
  /** Why no node stored a publication that began then. */
  explainFailure(since: number): Promise<SvcError | null>;
  /** Why nodes in other networks cannot reach this one; null if nothing is known that prevents it. */
  cutOff(): string | null;
}

/** The local agents. See `AgentRegistry`. */
export interface PublishedAgents {
  /** The bound service of an agent, for endpoint records. Empty for none. */
  service(aid: Aid): string;
  /** True if an agent is published only on request. */
  isHeld(aid: Aid): boolean;
}

/** See `OwnAddresses`. */
export interface PublishedAddresses {
  current(): NodeAddresses;
  /**
   * Adds a listener for changed addresses. `isUrgent`: it affects how other nodes dial this one. Returns a function that
   * removes the listener.
   */
  onChange(handler: (isUrgent: boolean) => void): () => void;
}

export interface DirectoryDependencies extends RandomParts, LocalAgents {
  readonly network: Records;
  readonly outages?: Outages;
  readonly publications: PublicationStore;
  /** AIDs without a record in the network. */
  readonly newAids: NewAids;
  readonly registry: PublishedAgents;
  readonly ownAddresses: PublishedAddresses;
  /** The setting `auto_publish`: publish agents when they are registered. */
  autoPublish(): boolean;
  /** Gets delegations on the network that are newer than the local ones. */
  readonly seen?: DelegationMemory;
  /** Called with each published record that at least one node stores. */
  onPublished(record: SignedRecord): void;
}
