/** Items for the programs of hooks, in the form in which the API returns them. */
import type { AccessRequests } from '../../capabilities/access/requests.ts';
import type { Chat } from '../../capabilities/chat/chat.ts';
import type { FileOffers } from '../../capabilities/file-offers/file-offers.ts';
import type { Groups } from '../../capabilities/groups/groups.ts';
import type { ChannelItems } from '../../capabilities/hooks/channel.ts';
import type { HookItems } from '../../capabilities/hooks/hooks.ts';
import type { Notes } from '../../capabilities/notes/notes.ts';
import { toHex } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { SeenDelegations } from '../../foundation/store/seen-delegations.ts';
import { accessRequestView } from './access.ts';
import { chatEntryView, chatRequestView } from './chat.ts';
import { fileOfferView } from './file-offers.ts';
import { groupEntryView, groupInvitationView } from './groups.ts';
import { noteView } from './mail.ts';

export interface HookItemDependencies {
  readonly notes: Notes;
  readonly chat: Chat;
  readonly groups: Groups;
  readonly offers: FileOffers;
  readonly requests: AccessRequests;
  readonly seen: SeenDelegations;
  readonly clock: Clock;
}

/** Items for a session of an assistant. */
export function channelItems(dependencies: HookItemDependencies): ChannelItems {
  const { notes, chat } = dependencies;
  return {
    ...hookItems(dependencies),
    isRead: (aid, peer, ref) => ref.kind === 'chat' && ref.seq <= chat.read(aid, peer, ref.seq, 1).readCursor,
    markRead: (aid, peer, ref) => {
      if (ref.kind === 'note') notes.markRead(aid, ref.messageId);
      if (ref.kind === 'chat') chat.markRead(aid, peer, ref.seq);
    },
  };
}

export function hookItems({ notes, chat, groups, offers, requests, seen, clock }: HookItemDependencies): HookItems {
  const load: HookItems['load'] = (aid, peer, ref) => {
    switch (ref.kind) {
      case 'note': {
        const note = notes.find(aid, ref.messageId);
        return note === null ? null : { note: noteView(note) };
      }
      case 'chat': {
        const entry = chat.entry(aid, peer, ref.seq);
        return entry === null || toHex(entry.id) !== ref.entryId ? null : { chat: chatEntryView(entry, aid, peer) };
      }
      case 'call':
        // Its caller is gone: it waited for another daemon.
        return null;
      case 'mention': {
        const entry = groups.entry(aid, ref.groupId, ref.entryId);
        return entry === null ? null : { mention: { group_id: ref.groupId, ...groupEntryView(entry) } };
      }
      case 'file': {
        const offer = offers.get(aid, ref.offerId);
        return offer.state === 'open' ? { file: fileOfferView(offer, { received: () => null }) } : null;
      }
      case 'access': {
        const request = requests.list().find(({ id, isOnce }) => id === ref.request && !isOnce);
        return request === undefined ? null : { access: accessRequestView(request) };
      }
      case 'invitation': {
        if (ref.groupId === null) {
          const request = chat.contacts(aid, 'in_pending').find((one) => one.peer === peer);
          return request === undefined ? null : { invitation: { to: 'chat', ...chatRequestView(request) } };
        }
        const invitation = groups.invitations(aid).find(({ groupId }) => groupId === ref.groupId);
        return invitation === undefined ? null : { invitation: { to: 'group', ...groupInvitationView(invitation) } };
      }
    }
  };
  return {
    now: () => clock.now(),
    addressOf: (peer) => seen.sourceOf(peer),
    note: (aid, messageId) => notes.find(aid, messageId),
    chatEntryId: (aid, peer, seq) => {
      const entry = chat.entry(aid, peer, seq);
      return entry === null ? null : toHex(entry.id);
    },
    load: (aid, peer, ref) => {
      try {
        return load(aid, peer, ref);
      } catch (error) {
        // The group or the offer was deleted.
        if (error instanceof SvcError && error.code === 'not_found') return null;
        throw error;
      }
    },
    acknowledge: (aid, peer, ref) => {
      if (ref.kind === 'note') notes.remove(aid, ref.messageId);
      if (ref.kind === 'chat') chat.markRead(aid, peer, ref.seq);
    },
  };
}
