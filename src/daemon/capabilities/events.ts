/** Events of local agents, stored and streamed, and counters of pending items. */
import { EventLog } from '../../capabilities/events/event-log.ts';
import { EventStreams } from '../../capabilities/events/event-streams.ts';
import { PendingCounters } from '../../capabilities/events/pending-counters.ts';
import { immediateClock } from '../../foundation/immediate-clock.ts';
import { EventStore } from '../../foundation/store/events.ts';
import type { Foundation } from '../foundation.ts';
import type { Agents } from './agents.ts';
import type { Messages } from './messages.ts';

export function buildEventLog({ life, clock, log, store }: Foundation): EventLog {
  const eventLog = new EventLog(new EventStore(store), clock, log);
  life.add('answering', eventLog);
  return eventLog;
}

/** The API that serves the streams starts and stops them. */
export function buildEventStreams(
  { clock, log }: Foundation,
  { onDeleted }: Agents,
  eventLog: EventLog,
  { notes, chat }: Messages,
) {
  const pending = new PendingCounters([
    () => new Map([...notes.pending()].map(([aid, mailbox]) => [aid, { mailbox }])),
    () => new Map([...chat.pending()].map(([aid, c]) => [aid, { chat_invites: c.invites, chat_unread: c.unread }])),
  ]);
  const eventStreams = new EventStreams(eventLog, (aid) => pending.view(aid ?? undefined), immediateClock(clock), log);
  onDeleted((aid) => {
    eventStreams.endStreamsOf(aid);
    eventLog.forget(aid);
  });
  return { pending, eventStreams };
}
