/** The record network: signed records at the nodes closest to a key, verified at every step. */
import type { Address } from '../../foundation/address.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';

export interface PutResult {
  /** Number of other nodes that verified the record and keep it. The copy of this node is not a replica. */
  readonly replicas: number;
  /** True if this node keeps a copy because it is among the closest nodes, or is the only node. */
  readonly isHere?: true;
  /** The newest record of the same AID and type that a node has instead, if it is newer. */
  readonly newer: SignedRecord | null;
  /**
   * Number of nodes that refused it, by reason: `newer`, `bad`, `misplaced`, `full`, `limited`, `too_large`, `removed`,
   * `not_now`.
   */
  readonly refused: Readonly<Record<string, number>>;
}

export interface PutOptions {
  readonly signal?: AbortSignal;
  /** Number of closest nodes that get the record, if fewer are enough. */
  readonly width?: number;
  /** Called with the number of replicas each time that it grows. */
  readonly onKept?: (replicas: number) => void;
  /**
   * Called with the final result if the write was answered earlier. With this callback, a write in a small network is
   * answered once half of the nodes near the key keep the record.
   */
  readonly onWhole?: (result: PutResult) => void;
}

export interface GetOptions {
  readonly signal?: AbortSignal;
  /** Time limit in ms. Then the read returns what it has. */
  readonly timeoutMs?: number;
  /** Wait for all of the closest nodes and use the best answer, instead of the first answers that agree. */
  readonly thorough?: boolean;
  /** Called with the first valid record, a list: with those of the first answer. They may not be the newest ones. */
  readonly onFirst?: (record: SignedRecord) => void;
  /**
   * Called after the search with whether enough of the closest nodes answered. If not, a record that was not found may
   * exist.
   */
  readonly onHeard?: (isEnough: boolean) => void;
}

export interface ListOptions extends Omit<GetOptions, 'thorough'> {
  /** At most this number of records. */
  readonly limit?: number;
  /** Wait for the few closest nodes only: enough to learn whether there are records, unless all of these hide them. */
  readonly brief?: boolean;
  /** Digests (`recordDigest`, in hex) of records that the reader has. They are neither fetched nor returned. */
  readonly known?: ReadonlySet<string>;
}

/** A note that its reader has fetched, and the proof for its removal. */
export interface NoteRemoval {
  /** `recordDigest` of its record. */
  readonly digest: Uint8Array;
  /** The value that the removal hash in its payload commits to. */
  readonly token: Uint8Array;
}

/** A neighbor in the routing table. */
export interface DhtPeer {
  readonly host: string;
  readonly port: number;
  /** When it entered the table, and when it was last heard: Unix milliseconds. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** Everything known about a neighbor. */
export interface Neighbour extends DhtPeer {
  /** The key that it stated, not verified; null if unknown. */
  readonly nodeKey: Uint8Array | null;
  /** Time of its last answer in ms; null if unknown. */
  readonly rttMs: number | null;
  /** Configured, or joined. */
  readonly isBootstrap: boolean;
}

/** This node as other nodes see it. */
export interface Reachability {
  /** There is a peer and the first search is complete, or other nodes use this one. */
  readonly ready: boolean;
  readonly peers: number;
  /** Nodes that use this node and are in no routing table, such as those behind NATs. */
  readonly clients: number;
  /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
  readonly natType: number;
  /** Our address, once enough distinct peers report it; empty before. */
  readonly observed: readonly Address[];
  /** True if this node is in routing tables of other nodes. */
  readonly inRoutingTables: boolean;
}

/** Number of nodes near a key that answered, and number of these that have a record. */
export interface HolderCount {
  readonly answered: number;
  readonly holding: number;
}

export interface StoreUsage {
  readonly records: number;
  readonly bytes: number;
  readonly maxBytes: number;
}

/** The nodes around a key. Reads and writes share one search. */
export interface NearbyNodes {
  /** As `RecordNetwork.get`, without another search if the type is the stated one. */
  get(type: RecordType, options: GetOptions): Promise<SignedRecord | null>;
  /** As `RecordNetwork.put`, without another search for some seconds. */
  put(record: SignedRecord, options: PutOptions): Promise<PutResult>;
  /** Ends the search if there is nothing to write. */
  stop(): void;
}

export interface RecordNetwork {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Its UDP address; only after `start`. */
  readonly address: Address;
  /** Stores a record at the nodes closest to `key`. */
  put(key: Uint8Array, record: SignedRecord, options?: PutOptions): Promise<PutResult>;
  /** The newest valid record of one type under an agent key; null if no node has one. */
  get(key: Uint8Array, type: RecordType, options?: GetOptions): Promise<SignedRecord | null>;
  /** All valid records under a key, newest of each AID and type: of every type, or of the given ones. */
  list(key: Uint8Array, types: readonly RecordType[], options?: ListOptions): Promise<readonly SignedRecord[]>;
  /**
   * Queries whether the other nodes near a key have a record of one type and agent.
   * @param seq records with lower sequence numbers do not count
   */
  holders(key: Uint8Array, type: RecordType, aid: Aid, seq: number): Promise<HolderCount>;
  /** Starts a search around a key, to read a record of this type (null for none) and to write others. */
  near(key: Uint8Array, type: RecordType | null): NearbyNodes;
  /** Sends removals of notes to the nodes near a mailbox key. Returns how many removals they report. Never rejects. */
  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number>;
  reachability(): Reachability;
  /** Calls back when our observed address, NAT type or readiness changes. Returns how to stop. */
  onReachability(handler: (r: Reachability) => void): () => void;
  peers(): readonly DhtPeer[];
  usage(): StoreUsage;
  /** Records of a type that this node keeps for the network, the last stored first. */
  recent(type: RecordType, limit: number): readonly SignedRecord[];
  /** Adds a node, for example one found on the LAN. */
  addNode(address: Address): void;
}
