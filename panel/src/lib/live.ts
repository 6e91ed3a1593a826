/**
 * The events of the daemon, in one stream for all tabs: a browser allows six connections per origin, and each stream
 * uses one. The tab with the lock reads the stream and forwards events to the other tabs. A hidden tab releases the
 * lock.
 */
import { createParser } from 'eventsource-parser';
import { request } from './api.ts';
import { RETRY_MS } from './cache.ts';
import { asFailure } from './failure.ts';
import { onSession } from './session.ts';
import { tabChannel } from './tab-channel.ts';

export interface LiveEvent {
  readonly type: string;
  readonly at: string;
  readonly aid: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type Listener = (event: LiveEvent) => void;

const listeners = new Set<Listener>();
const followers = new Set<(isThere: boolean) => void>();
const channel = tabChannel('svcd-events');
const tell = channel.postMessage.bind(channel);
let position = '';

function isEvent(value: unknown): value is LiveEvent {
  return (
    typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string' && 'aid' in value
  );
}

channel.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
  if (typeof data !== 'object' || data === null) return;
  if ('isThere' in data) turn(data.isThere === true);
  if (!('id' in data) || !('event' in data)) return;
  if (typeof data.id === 'string') position = data.id;
  hear(data.event);
});

function hear(event: unknown): void {
  if (isEvent(event)) for (const listener of listeners) listener(event);
}

/** Calls back for each event of an agent of this node. The returned function stops it. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function turn(isThere: boolean): void {
  for (const follower of followers) follower(isThere);
}

/** Calls back when the stream breaks and when it is restored. The returned function stops it. */
export function onTurn(follower: (isThere: boolean) => void): () => void {
  followers.add(follower);
  return () => followers.delete(follower);
}

async function read(signal: AbortSignal, begun: () => void): Promise<void> {
  const response = await request('/events', {
    headers: { accept: 'text/event-stream', ...(position === '' ? {} : { 'last-event-id': position }) },
    signal,
  });
  begun();
  const parser = createParser({
    onEvent: ({ id = '', data }) => {
      if (id !== '') position = id;
      const event: unknown = JSON.parse(data);
      hear(event);
      tell({ id: position, event });
    },
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) parser.feed(part.value);
}

/** Waits. A login or the signal ends it early. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stopListening();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    const stopListening = onSession(end);
    signal.addEventListener('abort', end);
  });
}

async function lead(signal: AbortSignal): Promise<void> {
  let wasThere = true;
  const set = (isThere: boolean): void => {
    if (isThere === wasThere) return;
    wasThere = isThere;
    turn(isThere);
    tell({ isThere });
  };
  for (let failed = 0; !signal.aborted; failed++) {
    const started = Date.now();
    try {
      await read(signal, () => set(true));
    } catch (error) {
      if (asFailure(error).code === 'unauthorized') failed = RETRY_MS.length;
    }
    if (signal.aborted) return;
    set(false);
    if (Date.now() - started > (RETRY_MS.at(-1) ?? 0)) failed = 0;
    await pause(RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] ?? 0, signal);
  }
}

/** Follows the events while the page is visible. */
export function followEvents(): void {
  let leaving: AbortController | null = null;
  const follow = (): void => {
    const seen = document.visibilityState === 'visible';
    if (seen && leaving === null) {
      const { signal } = (leaving = new AbortController());
      const locks: LockManager | undefined = navigator.locks;
      // A remote page over plain HTTP has no locks, and a browser that blocks storage grants none.
      const led = locks?.request('svcd-events', { signal }, () => lead(signal)) ?? lead(signal);
      led.catch(() => {
        if (!signal.aborted) lead(signal).catch(() => {});
      });
    } else if (!seen) {
      leaving?.abort();
      leaving = null;
    }
  };
  document.addEventListener('visibilitychange', follow);
  follow();
}
