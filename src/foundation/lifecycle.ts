/**
 * A part of the daemon. `start` acquires its timers, sockets and handles, `stop` releases all of them. Both are called
 * at most once, `stop` only after `start` has settled.
 */
export interface Component {
  start(): Promise<void>;
  stop(): Promise<void>;
}
