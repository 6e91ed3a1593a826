/**
 * Listens to streams, sockets and servers without ending the process. Node throws an `error` event that has no
 * listener, and may emit it after the listening code has finished: an aborted request fails one turn after its response
 * closed. So every emitter that passes through here keeps one `error` listener for life. `npm run check:architecture`
 * rejects code elsewhere that removes an `error` listener.
 */
import { type EventEmitter, once } from 'node:events';

/** Listeners of a stream by event. */
export interface StreamListeners {
  readonly connect?: () => void;
  readonly data?: (chunk: Buffer) => void;
  readonly readable?: () => void;
  readonly drain?: () => void;
  readonly end?: () => void;
  readonly error?: (error: Error) => void;
  readonly close?: () => void;
}

const guarded = new WeakSet<EventEmitter>();

function ignore(): void {}

/** Keeps errors of an emitter from ending the process, for as long as it exists. */
export function guard(emitter: EventEmitter): void {
  if (guarded.has(emitter)) return;
  guarded.add(emitter);
  emitter.on('error', ignore);
}

/** Listens to a stream; returns a function that stops. The stream stays guarded afterwards. */
export function listen(stream: EventEmitter, listeners: StreamListeners): () => void {
  guard(stream);
  const added = Object.entries(listeners);
  for (const [event, listener] of added) stream.on(event, listener);
  return () => {
    for (const [event, listener] of added) stream.off(event, listener);
  };
}

/**
 * Waits until a server or a UDP socket listens.
 * @throws Error of the system if it cannot
 */
export async function listening(server: EventEmitter): Promise<void> {
  guard(server);
  await once(server, 'listening');
}
