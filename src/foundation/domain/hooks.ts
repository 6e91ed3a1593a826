/** Hooks: programs that svcd starts when something arrives for an agent. Rules: docs/guides/wake.md. */

/**
 * Kinds of items that start a hook. `call`: the program answers the call. `invitation`: a chat request, or an
 * invitation to a group. `access`: a caller requests access.
 */
export const HOOK_KINDS = ['note', 'chat', 'call', 'mention', 'file', 'invitation', 'access'] as const;
export type HookKind = (typeof HOOK_KINDS)[number];

/**
 * `waiting`: for its first or its next start. `running`: its program runs. `done`: its program handled the item.
 * `gone`: the item no longer existed, so nothing was started. `dead`: given up after its last attempt; the owner can retry it.
 */
export const DELIVERY_STATES = ['waiting', 'running', 'done', 'gone', 'dead'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Hooks of one daemon. */
export const MAX_HOOKS = 64;
/** Words of a command, and the length of all of them together in characters. */
export const MAX_HOOK_WORDS = 64;
export const MAX_HOOK_COMMAND_CHARS = 4096;
/** Senders that one hook names. */
export const MAX_HOOK_SENDERS = 64;
/** Highest number of programs of one hook at the same time. */
export const MAX_HOOK_PARALLEL = 64;
/** Default and highest time for one run, milliseconds. */
export const HOOK_TIMEOUT_MS: number = 5 * 60_000;
export const MAX_HOOK_TIMEOUT_MS: number = 6 * 3600_000;
/** Failed runs after which a delivery is dead. */
export const MAX_HOOK_FAILURES = 8;
/** Starts after which a delivery is dead even if the daemon was stopped during most runs. */
export const MAX_HOOK_STARTS = 32;
/** Output of a program that is stored, bytes: the end of it. */
export const MAX_HOOK_OUTPUT_BYTES: number = 8 * 1024;
/** Deliveries of one hook that wait. Further items start nothing, and are counted. */
export const MAX_HOOK_WAITING = 5000;
/** Waiting deliveries of one hook from strangers: in all, from one sender, from one source, and from one network. */
export const MAX_HOOK_WAITING_OF_STRANGERS = 4000;
export const MAX_HOOK_WAITING_PER_STRANGER = 500;
export const MAX_HOOK_WAITING_PER_SOURCE = 1000;
export const MAX_HOOK_WAITING_PER_NETWORK = 2000;
/** Waiting deliveries of one hook from one sender that the owner knows. */
export const MAX_HOOK_WAITING_PER_KNOWN = 2500;
/** Ended deliveries that are stored for each hook: done, and dead. */
export const MAX_HOOK_DONE = 200;
export const MAX_HOOK_DEAD = 500;

/** Largest body of a call that a program answers, and of its answer, bytes. */
export const MAX_HOOK_CALL_BYTES: number = 256 * 1024;
export const MAX_HOOK_ANSWER_BYTES: number = 1024 * 1024;
/** Calls that wait for their program or its answer, and how many of these places strangers never use. */
export const MAX_HOOK_CALLS = 64;
export const MAX_HOOK_CALLS_RESERVED = 16;
/** Such calls of one caller or node, and of strangers at one source and in one network. */
export const MAX_HOOK_CALLS_PER_CALLER = 16;
export const MAX_HOOK_CALLS_PER_SOURCE = 16;
export const MAX_HOOK_CALLS_PER_NETWORK = 24;
/** Time until the program of a call starts, milliseconds. After that, the caller gets `rate_limited`. */
export const HOOK_CALL_WAIT_MS = 30_000;

/** Starts for one sender per minute, if the owner does not know it, and otherwise. */
export const HOOK_STARTS_PER_STRANGER = 6;
export const HOOK_STARTS_PER_KNOWN = 240;
/** Starts for strangers per minute: at one source, in one network, and in all. */
export const HOOK_STARTS_PER_SOURCE = 12;
export const HOOK_STARTS_PER_NETWORK = 24;
export const HOOK_STARTS_OF_STRANGERS = 60;
/** Programs of hooks at the same time, and how many of these places strangers never use. */
export const HOOKS_PARALLEL = 8;
export const HOOKS_PARALLEL_RESERVED = 2;
/** Programs of hooks at the same time for strangers at one source, and in one network. */
export const HOOKS_PARALLEL_PER_SOURCE = 2;
export const HOOKS_PARALLEL_PER_NETWORK = 4;

/** Services of one daemon that start on demand. */
export const MAX_ON_DEMAND = 32;
/** Default and longest idle time after which such a service is stopped, milliseconds. */
export const ON_DEMAND_IDLE_MS: number = 5 * 60_000;
export const MAX_ON_DEMAND_IDLE_MS: number = 24 * 3600_000;
