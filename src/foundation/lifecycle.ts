/**
 * A part of the daemon with a life: `start` acquires, `stop` releases every timer, socket and
 * handle. Both are called at most once, `stop` only after `start` has settled.
 */
export interface Component {
  start(): Promise<void>;
  stop(): Promise<void>;
}
