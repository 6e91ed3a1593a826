/** Handlers of the chat operations. */
import type { Chat } from '../../capabilities/chat/chat.ts';
import type { Contact, SentEntry } from '../../capabilities/chat/types.ts';
import type { EventWaits } from '../../capabilities/events/event-waits.ts';
import { toHex } from '../../foundation/bytes.ts';
import { isoTime } from '../../foundation/clock.ts';
import { excerpt } from '../../foundation/display-text.ts';
import { CONTACT_STATES, type PairState } from '../../foundation/domain/chat.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ChatEntry } from '../../foundation/store/chat-log.ts';
import { CHAT_PAGE_DEFAULT, type chatOperations } from '../chat.ts';
import type { Handlers, OutputOf, ResultOf } from '../operation.ts';
import { listPage } from '../paging.ts';
import type { Repeats } from './repeats.ts';
import { eitherCursor, timeOrNull } from './values.ts';

export interface ChatHandlerDependencies {
  readonly chat: Pick<
    Chat,
    | 'request'
    | 'accept'
    | 'refuse'
    | 'remove'
    | 'block'
    | 'send'
    | 'entry'
    | 'read'
    | 'readBefore'
    | 'markRead'
    | 'contacts'
  >;
  readonly waits: Pick<EventWaits, 'until'>;
  readonly repeats: Pick<Repeats, 'run'>;
}

const OK = { ok: true } as const;

function stateView(state: PairState): OutputOf<typeof chatOperations.chatRequest> {
  // A contact that was just requested or accepted exists.
  if (state === 'none') throw new SvcError('wrong_state');
  return { state };
}

/** A chat entry as it is returned to clients. */
export function chatEntryView(
  entry: ChatEntry,
  aid: Aid,
  peer: Aid,
): ResultOf<typeof chatOperations.chatRead>['entries'][number] {
  const { seq, id, incoming, at, text, file, status } = entry;
  const holder = incoming ? peer : aid;
  return {
    seq,
    id: toHex(id),
    dir: incoming ? 'in' : 'out',
    at: isoTime(at),
    kind: file === null ? 'text' : 'file',
    text: text ?? undefined,
    ...(file === null
      ? {}
      : { object_id: file.objectId, name: file.name, size: file.size, url: `svc://${holder}/cas/${file.objectId}` }),
    status,
  };
}

function lastView({ incoming, at, text, file, status }: ChatEntry) {
  return {
    dir: incoming ? ('in' as const) : ('out' as const),
    at: isoTime(at),
    text: excerpt(text ?? file?.name ?? ''),
    status,
  };
}

/** A chat request as it is returned to clients. */
export function chatRequestView({ peer, since, note }: Contact) {
  return { peer, since: isoTime(since), note };
}

export function chatHandlers({ chat, waits, repeats }: ChatHandlerDependencies): Handlers<typeof chatOperations> {
  return {
    chatRequest: ({ aid, peer, note = '' }) => stateView(chat.request(aid, peer, note)),
    chatAccept: ({ aid, peer }) => stateView(chat.accept(aid, peer)),
    chatRefuse: ({ aid, peer }) => {
      chat.refuse(aid, peer);
      return OK;
    },
    chatRemove: ({ aid, peer }) => {
      chat.remove(aid, peer);
      return OK;
    },
    chatBlock: ({ aid, peer }) => {
      chat.block(aid, peer);
      return OK;
    },
    chatSend: async ({ aid, peer, text, path, object_id: objectId }, context) => {
      // A remote caller must not make files of this machine readable.
      if (path !== undefined && context.origin !== 'local')
        throw new SvcError('local_only', {
          message:
            'Only programs on this machine can send a file by its path. Upload it as an object, and send that with object_id.',
        });
      return repeats.run<SentEntry>(
        {
          aid,
          content: { chat: peer, text, path, objectId },
          act: (keep) => chat.send(aid, peer, { text, path, objectId }, (seq) => keep(String(seq))),
          again: (seq) => {
            const entry = chat.entry(aid, peer, Number(seq));
            const status = entry?.status;
            return entry?.incoming === false && (status === 'sent' || status === 'queued')
              ? { seq: entry.seq, status }
              : null;
          },
        },
        context,
      );
    },
    chatMarkRead: ({ aid, peer, scanned_to = 0 }) => {
      const { readCursor, unread } = chat.markRead(aid, peer, scanned_to);
      return { read_cursor: readCursor, unread_count: unread };
    },
    chatContacts: ({ aid, ...query }) => {
      const sortable = CONTACT_STATES.flatMap((state, i) =>
        chat.contacts(aid, state).map((contact) => ({
          sortKey: `${i} ${isoTime(contact.since)} ${contact.peer}`,
          entry: { state, contact },
        })),
      );
      const { entries, next_cursor } = listPage(sortable, query);
      const of = (wanted: (typeof CONTACT_STATES)[number]) =>
        entries.flatMap(({ state, contact }) => (state === wanted ? [contact] : []));
      return {
        friends: of('friends').map(({ peer, since, unread, lastAt, lastSeq, last }) => ({
          peer,
          since: isoTime(since),
          unread_count: unread,
          last_at: timeOrNull(lastAt),
          last_seq: lastSeq,
          last: last === null ? null : lastView(last),
        })),
        out_pending: of('out_pending').map(chatRequestView),
        in_pending: of('in_pending').map(chatRequestView),
        blocked: of('blocked').map(({ peer, since }) => ({ peer, since: isoTime(since) })),
        next_cursor,
      };
    },
    chatRead: async ({ aid, peer, after_seq, before_seq, limit = CHAT_PAGE_DEFAULT, wait_s }, client) => {
      if (after_seq !== undefined && before_seq !== undefined) throw eitherCursor();
      const read = () =>
        before_seq === undefined
          ? chat.read(aid, peer, after_seq ?? 0, limit)
          : chat.readBefore(aid, peer, before_seq, limit);
      const page = await waits.until({ aid, wait_s, client }, read, ({ entries }) => entries.length === 0);
      return {
        entries: page.entries.map((entry) => chatEntryView(entry, aid, peer)),
        scanned_to: page.scannedTo,
        has_more: page.hasMore,
        read_cursor: page.readCursor,
        unread_count: page.unread,
      };
    },
  };
}
