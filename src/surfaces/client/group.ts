/** A group for programs: write entries and read new ones. */
import { fromBase64 } from '../../foundation/bytes.ts';
import type { CallOptions } from '../../operations/client.ts';
import { base64Of, type SvcApi } from './api.ts';
import { rerunAfterEvents } from './event-loop.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';

export interface GroupOptions {
  /** AID or label of the local member. Optional if there is only one. */
  readonly as?: string;
}

/** An entry of a group. */
export interface GroupMessage {
  readonly id: string;
  /** Its position in the copy of this node. */
  readonly seq: number;
  /** AID of the author, verified by its signature. */
  readonly author: string;
  /** `msg`, `file`, or a custom kind. */
  readonly kind: string;
  /** The body as text, written by the author. */
  readonly text: string;
  readonly at: Date;
  /** Writes an answer to this entry. */
  reply(text: string): Promise<void>;
}

export interface EntriesOptions {
  /** Only entries after this position. Default: unread entries. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

export class Group {
  readonly id: string;
  readonly #api: SvcApi;
  readonly #client: DaemonOptions;
  readonly #as: string | undefined;

  constructor(id: string, api: SvcApi, client: DaemonOptions, { as }: GroupOptions) {
    this.id = id;
    this.#api = api;
    this.#client = client;
    this.#as = as;
  }

  /** Writes a message. @throws SvcError errors of the daemon, such as `not_member` */
  async say(text: string): Promise<void> {
    await this.#append(text);
  }

  /** The members of the group. @throws SvcError errors of the daemon */
  async members(): Promise<readonly { readonly aid: string; readonly role: string }[]> {
    const { members } = await this.#api.groupMembers(await this.#names());
    return members;
  }

  /** Invites an agent by AID. @throws SvcError errors of the daemon */
  async invite(aid: string): Promise<void> {
    await this.#api.groupInvite({ ...(await this.#names()), target_aid: aid });
  }

  /** The invitation link. Anyone with the link can join. @throws SvcError errors of the daemon */
  async link(): Promise<string> {
    const { link } = await this.#api.groupGetLink(await this.#names());
    return link;
  }

  /**
   * Entries of other members, oldest first, then new ones. An entry is marked as read when the next one is requested.
   * If the handler throws or the program ends, the entry is delivered again.
   * @throws SvcError errors of the daemon
   */
  async *entries({ after, signal }: EntriesOptions = {}): AsyncGenerator<GroupMessage, void> {
    const api = this.#api;
    const { aid, group_id } = await this.#names();
    let seen = after ?? (await api.groupHead({ aid, group_id })).read_cursor;
    const read = async function* (group: Group, call: CallOptions): AsyncGenerator<GroupMessage, void> {
      for (;;) {
        const page = await api.groupRead({ aid, group_id, after_seq: seen }, call);
        for (const { seq, entry_id: id, author, kind, at, body = '', retracted } of page.entries) {
          if (author !== aid && retracted !== true) {
            const text = new TextDecoder().decode(fromBase64(body) ?? new Uint8Array());
            const reply = (answer: string): Promise<void> => group.#append(answer, id);
            yield { id, seq, author, kind, text, at: new Date(at), reply };
          }
          seen = seq;
          await api.groupMarkRead({ aid, group_id, seq }, call);
        }
        seen = Math.max(seen, page.scanned_to_seq);
        if (!page.has_more) return;
      }
    };
    yield* rerunAfterEvents({ api, client: this.#client, aid, types: 'group.unread,group.mentioned', signal }, (call) =>
      read(this, call),
    );
  }

  async #append(text: string, reply_to?: string): Promise<void> {
    await this.#api.groupAppend({ ...(await this.#names()), body: base64Of(text), reply_to });
  }

  async #names(): Promise<{ readonly aid: string; readonly group_id: string }> {
    return { aid: await actingAgent(this.#api, this.#as), group_id: this.id };
  }
}
