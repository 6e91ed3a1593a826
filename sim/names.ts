/** Names of the parts of a world, for its options. */

/** Kinds of faults. */
export const FAULT_KINDS = [
  'loss',
  'partition',
  'one-way partition',
  'flapping partition',
  'sleep',
  'crash',
  'restart',
  'nat restart',
  'address change',
  'clock jump',
  'wrong clock',
  'power cut',
  'blackout',
  'full disk',
  'failing writes',
  'failing reads',
  'failing flushes',
  'slow network',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export const USER_NAMES = [
  'keys',
  'calls',
  'notes',
  'chats',
  'files',
  'records',
  'groups',
  'lives',
  'tunnels',
  'streams',
  'disasters',
  'trials',
] as const;

/** Trials take hours and need no faults. */
export const DEFAULT_USERS: readonly string[] = USER_NAMES.filter((name) => name !== 'trials');
