/** A room of many: what is said in it, and what comes. */
import { fromBase64 } from '../../foundation/bytes.ts';
import type { CallOptions } from '../../operations/client.ts';
import type { SvcApi } from './api.ts';
import { lookAgain } from './hints.ts';
import { actingAgent } from './names.ts';
import type { DaemonOptions } from './place.ts';
import { base64Of } from './text.ts';

export interface RoomOptions {
  /** The agent here that is in the room, by AID or label; the only one where it is left out. */
  readonly as?: string;
}

/** What somebody said in a room. */
export interface SaidEntry {
  readonly id: string;
  /** Its place in the copy of this node. */
  readonly seq: number;
  /** AID of who said it, proven by its signature. */
  readonly author: string;
  /** `msg`, `file`, or a kind of somebody's own. */
  readonly kind: string;
  /** The body as text; as it came, from somebody else. */
  readonly text: string;
  readonly at: Date;
  /** Says something in answer to it. */
  reply(text: string): Promise<void>;
}

export interface EntriesOptions {
  /** Only entries behind this place; where it is left out, those that were not read yet. */
  readonly after?: number;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

export class Room {
  readonly id: string;
  readonly #api: SvcApi;
  readonly #client: DaemonOptions;
  readonly #as: string | undefined;

  constructor(id: string, api: SvcApi, client: DaemonOptions, { as }: RoomOptions) {
    this.id = id;
    this.#api = api;
    this.#client = client;
    this.#as = as;
  }

  /** Says something. @throws SvcError what the daemon answers, such as `not_member` */
  async say(text: string): Promise<void> {
    await this.#append(text);
  }

  /** Who is in the room. @throws SvcError what the daemon answers */
  async members(): Promise<readonly { readonly aid: string; readonly role: string }[]> {
    const { members } = await this.#api.groupMembers(await this.#names());
    return members;
  }

  /** Invites an agent, by its AID. @throws SvcError what the daemon answers */
  async invite(aid: string): Promise<void> {
    await this.#api.groupInvite({ ...(await this.#names()), target_aid: aid });
  }

  /** A line that lets in who has it. @throws SvcError what the daemon answers */
  async link(): Promise<string> {
    const { link } = await this.#api.groupGetLink(await this.#names());
    return link;
  }

  /**
   * What others say, oldest first, and then what comes. An entry counts as read when the next one is asked for; one whose
   * handling threw, or during which the program ended, comes again.
   * @throws SvcError what the daemon answers
   */
  async *entries({ after, signal }: EntriesOptions = {}): AsyncGenerator<SaidEntry, void> {
    const api = this.#api;
    const { aid, group_id } = await this.#names();
    let seen = after ?? (await api.groupHead({ aid, group_id })).read_cursor;
    const read = async function* (room: Room, call: CallOptions): AsyncGenerator<SaidEntry, void> {
      for (;;) {
        const page = await api.groupRead({ aid, group_id, after_seq: seen }, call);
        for (const { seq, entry_id: id, author, kind, at, body = '', retracted } of page.entries) {
          if (author !== aid && retracted !== true) {
            const text = new TextDecoder().decode(fromBase64(body) ?? new Uint8Array());
            const reply = (answer: string): Promise<void> => room.#append(answer, id);
            yield { id, seq, author, kind, text, at: new Date(at), reply };
          }
          seen = seq;
          await api.groupMarkRead({ aid, group_id, seq }, call);
        }
        seen = Math.max(seen, page.scanned_to_seq);
        if (!page.has_more) return;
      }
    };
    yield* lookAgain({ api, client: this.#client, aid, types: 'group.unread,group.mentioned', signal }, (call) =>
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
