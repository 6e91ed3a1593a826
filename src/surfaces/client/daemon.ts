/** A daemon for programs: its operations, remote agents, notes and groups. */
import { followEvents } from '../../operations/event-client.ts';
import { apiOf, type SvcApi } from './api.ts';
import { Group, type GroupOptions } from './group.ts';
import { type InboxOptions, iterateNotes, type ReceivedNote } from './inbox.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';
import { type AgentOptions, RemoteAgent, type SendCall, sendThroughApi } from './remote-agent.ts';

export interface EventsOptions {
  /** AID of a local agent. Default: all agents. */
  readonly aid?: string;
  /** Event types, separated by commas, such as `mailbox.received,chat.received`. */
  readonly types?: string;
  /** Number of the last event seen. Default: only new events. */
  readonly after?: number;
  /** Ends the iteration with the error `cancelled`. */
  readonly signal?: AbortSignal;
}

/** An event. It is a hint: the API returns the content. */
export interface AgentEvent {
  /** Its number, or null if it has none. */
  readonly seq: number | null;
  readonly event: string;
  readonly data: unknown;
}

type StreamFetch = (url: string, init: RequestInit) => Promise<Response>;

export class SvcDaemon {
  /** Every operation of the REST API, and operations that exist only as tools. */
  readonly api: SvcApi;
  readonly #client: DaemonOptions;
  readonly #carry: SendCall;

  /** @param carry sends calls. Default: through the API */
  constructor(
    options: DaemonOptions & { readonly fetch?: StreamFetch; readonly streamFetch?: StreamFetch },
    carry?: (api: SvcApi) => SendCall,
  ) {
    this.#client = options;
    this.api = apiOf(options);
    this.#carry = (carry ?? sendThroughApi)(this.api);
  }

  /** A remote agent, by AID or label. Sends no request yet. */
  agent(name: string, options: AgentOptions = {}): RemoteAgent {
    return new RemoteAgent(name, { api: this.api, carry: this.#carry }, options);
  }

  /** The received notes of a local agent, now and later. Each note is deleted after it was handled. */
  inbox(options: InboxOptions = {}): AsyncGenerator<ReceivedNote, void> {
    return iterateNotes(this.api, this.#client, options);
  }

  /** A group with a local member. */
  group(id: string, options: GroupOptions = {}): Group {
    return new Group(id, this.api, this.#client, options);
  }

  /** Joins a group by its link, or creates one with a title. @throws SvcError errors of the daemon */
  async openGroup(
    by: { readonly link: string } | { readonly title: string },
    options: GroupOptions = {},
  ): Promise<Group> {
    const aid = await actingAgent(this.api, options.as);
    const { group_id } =
      'link' in by
        ? await this.api.groupJoin({ aid, link: by.link })
        : await this.api.groupCreate({ aid, title: by.title });
    return this.group(group_id, options);
  }

  /** Events of local agents as they occur. Resumes after a lost connection. */
  events(options: EventsOptions = {}): AsyncGenerator<AgentEvent> {
    return followEvents(this.#client, options);
  }
}
