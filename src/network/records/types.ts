/** The record network: signed records at the nodes closest to a key, verified at every step. */
import type { Address } from '../../foundation/address.ts';
import type { SignedRecord } from '../../foundation/records/record.ts';
import type { RecordType } from '../../foundation/records/types.ts';

export interface PutResult {
  /** How many other nodes verified the record and keep it. The copy of this node is not a replica. */
  readonly replicas: number;
  /** True if this node keeps a copy as one of the nodes that readers ask, or as the only node there is. */
  readonly isHere?: true;
  /** The newest record of the same AID and type that a storing node holds instead of ours, if one is newer. */
  readonly newer: SignedRecord | null;
  /** How many nodes refused it, by reason: `newer`, `bad`, `misplaced`, `full`, `limited`, `too_large`, `removed`, `not_now`. */
  readonly refused: Readonly<Record<string, number>>;
}

export interface PutOptions {
  readonly signal?: AbortSignal;
  /** Told each time that one more other node keeps the record: how many do. */
  readonly onKept?: (replicas: number) => void;
  /**
   * Told what has become of the record in all, where that is known later than the answer only. Who names it has the answer
   * once half of the nodes near the key keep the record, though they are fewer than should.
   */
  readonly onWhole?: (result: PutResult) => void;
}

export interface GetOptions {
  readonly signal?: AbortSignal;
  /** Give up after this many milliseconds and return what has come. */
  readonly timeoutMs?: number;
  /** Ask all of the closest nodes and take the best of their answers, instead of the first that agree. */
  readonly thorough?: boolean;
  /** Told of the first valid record that comes, before it is known whether it is the newest. */
  readonly onFirst?: (record: SignedRecord) => void;
}

export interface ListOptions extends Omit<GetOptions, 'thorough' | 'onFirst'> {
  /** At most this many records. */
  readonly limit?: number;
  /** Digests (`recordDigest`, in hex) of records that the reader has: they are neither fetched nor returned. */
  readonly known?: ReadonlySet<string>;
}

/** A note that its reader has taken, and what proves it. */
export interface NoteRemoval {
  /** `recordDigest` of its record. */
  readonly digest: Uint8Array;
  /** What the removal hash of its payload commits to. */
  readonly token: Uint8Array;
}

/** A neighbour in the routing table. */
export interface DhtPeer {
  readonly host: string;
  readonly port: number;
  /** Since when it has been in the table without a break, and when it was last heard: milliseconds since the Unix epoch. */
  readonly firstSeen: number;
  readonly lastSeen: number;
}

/** What is known of a neighbour. */
export interface Neighbour extends DhtPeer {
  /** The key that it said it has, which nobody has proven; null where it has not said. */
  readonly nodeKey: Uint8Array | null;
  /** How long its last answer took, milliseconds; null where that is not remembered. */
  readonly rttMs: number | null;
  /** Named in the configuration, or joined. */
  readonly isBootstrap: boolean;
}

/** What a node knows of itself from what others see. */
export interface Reachability {
  /** At least one peer and a finished first search, or nodes that use this one. */
  readonly ready: boolean;
  readonly peers: number;
  /** Nodes that use this one and stand in no routing table, such as those behind NATs. */
  readonly clients: number;
  /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
  readonly natType: number;
  /** Our address as enough distinct peers report it; empty until then. */
  readonly observed: readonly Address[];
  /** True where this node stands in others' routing tables. */
  readonly inRoutingTables: boolean;
}

/** Of the nodes that should keep a record, how many answer, and how many of them say that they have one. */
export interface HolderCount {
  readonly answered: number;
  readonly holding: number;
}

export interface StoreUsage {
  readonly records: number;
  readonly bytes: number;
  readonly maxBytes: number;
}

/** The nodes around one key, searched once for what is read there and what is put there after it. */
export interface NearbyNodes {
  /** As `RecordNetwork.get`; no further search where the type is the one that was named. */
  get(type: RecordType, options: GetOptions): Promise<SignedRecord | null>;
  /** As `RecordNetwork.put`; no further search for some seconds. */
  put(record: SignedRecord, options: PutOptions): Promise<PutResult>;
  /** Ends the search, where nothing is to be put after all. */
  stop(): void;
}

export interface RecordNetwork {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Where it listens (UDP); only after `start`. */
  readonly address: Address;
  /** Stores a record at the nodes closest to `key`. */
  put(key: Uint8Array, record: SignedRecord, options?: PutOptions): Promise<PutResult>;
  /** The newest valid record of one type under an agent key; null where no node has one. */
  get(key: Uint8Array, type: RecordType, options?: GetOptions): Promise<SignedRecord | null>;
  /** All valid records under a key, newest of each AID and type: of every type, or of the given ones. */
  list(key: Uint8Array, types: readonly RecordType[], options?: ListOptions): Promise<readonly SignedRecord[]>;
  /** Asks the other nodes that should keep a record of one type under a key whether they do. */
  holders(key: Uint8Array, type: RecordType): Promise<HolderCount>;
  /** Begins to search the nodes around a key, for a record of one type to be read there or null, and others to be put. */
  near(key: Uint8Array, type: RecordType | null): NearbyNodes;
  /** Asks the nodes near a mailbox key to drop notes; returns how many removals they report. Never rejects. */
  removeNotes(key: Uint8Array, removals: readonly NoteRemoval[]): Promise<number>;
  reachability(): Reachability;
  /** Calls back when our observed address, NAT type or readiness changes. Returns how to stop. */
  onReachability(handler: (r: Reachability) => void): () => void;
  peers(): readonly DhtPeer[];
  usage(): StoreUsage;
  /** Makes a node known, found on the LAN for example. */
  addNode(address: Address): void;
}
