/** A daemon, as a program uses it: its operations, remote agents, notes and rooms. */
import { followEvents } from '../../operations/event-client.ts';
import { apiOf, type SvcApi } from './api.ts';
import { carryThrough } from './carry.ts';
import { type InboxOptions, inboxOf, type ReceivedNote } from './inbox.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';
import { type AgentOptions, type Carry, RemoteAgent } from './remote-agent.ts';
import { Room, type RoomOptions } from './room.ts';

export interface EventsOptions {
  /** One agent here, by AID; all of them where it is left out. */
  readonly aid?: string;
  /** Kinds, separated by commas, such as `mailbox.received,chat.received`. */
  readonly types?: string;
  /** Number of the last event that was seen; only what comes from now on where it is left out. */
  readonly after?: number;
  /** Ends the iteration, with the error `cancelled`. */
  readonly signal?: AbortSignal;
}

/** Something that happened: a hint, the content lies where the API reads it. */
export interface AgentEvent {
  /** Its number; null for those that have none. */
  readonly seq: number | null;
  readonly event: string;
  readonly data: unknown;
}

type StreamFetch = (url: string, init: RequestInit) => Promise<Response>;

export class SvcDaemon {
  /** Every operation of the REST API, and those that only tools offer. */
  readonly api: SvcApi;
  readonly #client: DaemonOptions;
  readonly #carry: Carry;

  /** @param carry how calls go; through the API where it is left out */
  constructor(
    options: DaemonOptions & { readonly fetch?: StreamFetch; readonly streamFetch?: StreamFetch },
    carry?: (api: SvcApi) => Carry,
  ) {
    this.#client = options;
    this.api = apiOf(options);
    this.#carry = (carry ?? carryThrough)(this.api);
  }

  /** A remote agent, by its AID or by a label of the address book; nothing is asked for yet. */
  agent(name: string, options: AgentOptions = {}): RemoteAgent {
    return new RemoteAgent(name, { api: this.api, carry: this.#carry }, options);
  }

  /** The notes of an agent here and those that come, each deleted once it was handled. */
  inbox(options: InboxOptions = {}): AsyncGenerator<ReceivedNote, void> {
    return inboxOf(this.api, this.#client, options);
  }

  /** A room that an agent here is in. */
  room(id: string, options: RoomOptions = {}): Room {
    return new Room(id, this.api, this.#client, options);
  }

  /** Joins a room by its link, or makes one with a title. @throws SvcError what the daemon answers */
  async openRoom(by: { readonly link: string } | { readonly title: string }, options: RoomOptions = {}): Promise<Room> {
    const aid = await actingAgent(this.api, options.as);
    const { group_id } =
      'link' in by
        ? await this.api.groupJoin({ aid, link: by.link })
        : await this.api.groupCreate({ aid, title: by.title });
    return this.room(group_id, options);
  }

  /** What happens to the agents here, or to one of them, as it comes; it goes on where the connection broke off. */
  events(options: EventsOptions = {}): AsyncGenerator<AgentEvent> {
    return followEvents(this.#client, options);
  }
}
